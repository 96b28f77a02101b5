//! Strict mode: a call that asks is replayed, and must ask the same again.

use serde_json::Value;

use crate::{
    answers::Question,
    client::Client,
    error::{CallError, Fault},
    reply::Reply,
};

/// How often each round is replayed.
const REPLAYS: usize = 2;

impl Client {
    /// Replays the round that `reply` ended, without answers. The states of the replays are thrown
    /// away.
    pub(crate) async fn replay(
        &self,
        reply: &Reply,
        questions: &[Question],
    ) -> Result<(), CallError> {
        if questions.is_empty() {
            return Ok(()); // without a question there is nothing to wait for: the call would go on
        }
        for _ in 0..REPLAYS {
            let replay = self.retry(reply, Value::Null).await?;
            let again = if replay.error().is_none() { replay.input_requests() } else { Vec::new() };
            if let Some(text) = difference(questions, &again, &replay) {
                let exchanges = [&reply.exchange, &replay.exchange];
                return Err(CallError::between(Fault::Unstable, text, exchanges));
            }
        }
        Ok(())
    }
}

/// How the replay differs.
fn difference(first: &[Question], again: &[Question], replay: &Reply) -> Option<String> {
    for question in first {
        let key = &question.key;
        let Some(same) = again.iter().find(|same| same.key == *key) else {
            return Some(match replay.error() {
                Some(error) => {
                    format!("question `{key}`: the replay failed: {}", error["message"])
                }
                None => format!(
                    "question `{key}` is not asked again: is its key the same in every run?"
                ),
            });
        };
        if same != question {
            return Some(format!(
                "question `{key}` is another one when it is replayed; its answer would be ignored"
            ));
        }
    }
    let new = again.iter().find(|question| first.iter().all(|known| known.key != question.key))?;
    Some(format!("question `{}` is new when the call is replayed", new.key))
}
