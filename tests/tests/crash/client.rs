//! A client that begins tasks, looks in and answers, whatever happens to the instances.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use mcp_edge_test::{CallError, Client, Task, TaskStatus};
use serde_json::json;
use tokio::time::sleep;

use crate::{
    point::Random,
    worker::{Outcome, QUESTIONS, STEPS},
};

/// Works on one task after the other until it is told that it is over; returns how many it finished.
pub(crate) async fn keep_busy(client: Client, mut random: Random, over: Arc<AtomicBool>) -> u64 {
    let mut finished = 0;
    while finished == 0 || !over.load(Ordering::SeqCst) {
        let task = persist(|| client.start("work", json!({}))).await;
        let mut answers = Answers::default();
        let end = loop {
            let seen = persist(|| client.task(&task.id)).await;
            if seen.status.is_terminal() {
                break seen;
            }
            for question in &seen.questions {
                answers.give(&client, &task.id, &question.key, &mut random).await;
            }
            sleep(Duration::from_millis(5)).await;
        };
        answers.judge(&end);
        finished += 1;
    }
    finished
}

/// Tries again as long as nobody answers; an error of the protocol is none that a kill explains.
async fn persist<T, F>(mut request: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, CallError>>,
{
    for _ in 0..2000 {
        match request().await {
            Ok(answer) => return answer,
            Err(error) => assert_eq!(error.code(), None, "{error}"),
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("nobody answers any more")
}

/// What was answered to the questions of one task.
#[derive(Default)]
struct Answers {
    /// Acknowledged: these must count.
    acknowledged: BTreeMap<String, String>,
    /// Sent, and nobody said what became of them.
    sent: BTreeMap<String, BTreeSet<String>>,
}

impl Answers {
    async fn give(&mut self, client: &Client, id: &str, key: &str, random: &mut Random) {
        assert!(!self.acknowledged.contains_key(key), "`{key}` was answered, and is asked again");
        let text = format!("answer {}", random.below(u64::MAX));
        let answer = json!({ key: { "action": "accept", "content": { "text": text } } });
        match client.update_task(id, answer).await {
            Ok(()) => {
                // If an earlier one counted already, this one was for a key that is not asked.
                match self.sent.get_mut(key) {
                    Some(sent) => {
                        sent.insert(text);
                    }
                    None => {
                        self.acknowledged.insert(key.to_owned(), text);
                    }
                }
            }
            Err(error) => {
                assert_eq!(error.code(), None, "{error}");
                self.sent.entry(key.to_owned()).or_default().insert(text);
            }
        }
    }

    /// Looks at the result of the task.
    fn judge(&self, task: &Task) {
        assert_eq!(task.status, TaskStatus::Completed, "{task:?}");
        let result = task.result.as_ref().unwrap();
        let outcome: Outcome = serde_json::from_value(result["structuredContent"].clone()).unwrap();
        assert_eq!(outcome.total, (0..STEPS).sum::<usize>());
        let effects: BTreeSet<_> = outcome.effects.iter().collect();
        assert_eq!(effects.len(), STEPS);
        for (number, answer) in QUESTIONS.iter().zip(&outcome.answers) {
            let key = format!("question {number}");
            let counts = match self.acknowledged.get(&key) {
                Some(acknowledged) => answer == acknowledged,
                None => self.sent.get(&key).is_some_and(|sent| sent.contains(answer)),
            };
            assert!(counts, "`{key}` counts as {answer}, which is not what was acknowledged");
        }
        assert_eq!(outcome.answers.len(), QUESTIONS.len());
    }
}
