//! The context of a handler: [`Cx`].

use std::{sync::Arc, time::Duration};

use ring::digest::{SHA256, digest};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};

use crate::{
    call::{Call, Capability},
    elicit_schema, encode,
    error::ToolError,
    feed::Publisher,
    journal::{
        claim::{Claim, Claimed, Held, ask, background, in_step, read},
        engine::{Fatal, Question},
        entry::{Digest, Kind},
    },
    observe::TraceContext,
    platform::Timestamp,
    principal::Principal,
    protocol::{
        ElicitAction, ElicitResult, LogLevel, Root, RootsResult, SampleParams, SampleResult,
    },
    schema::{self, Schema},
    server::{Form, FormSchema},
    uri,
};

/// The context of one call: what its handler reaches beyond its arguments.
///
/// A handler takes it by value, a helper by reference; clones share one call. Effects that must not
/// be repeated and questions to the user have a *key* and go through it. What they returned is the
/// journal: while the client answers a question nothing of the call is kept here, and the handler is
/// run again from its start, on any machine, with everything keyed replayed from the journal.
///
/// So what is *not* keyed runs again in each round: a plain `.await` before a question is for reads.
/// A key is used once in a call, and never inside the body of a step.
#[derive(Clone, Debug)]
pub struct Cx {
    call: Arc<Call>,
}

impl Cx {
    pub(crate) const fn new(call: Arc<Call>) -> Self {
        Self { call }
    }

    // Effects.

    /// Runs `effect` once: its value, or its error, is in the journal from then on.
    ///
    /// A crash while it runs makes it run again; give what it calls an
    /// [`idempotency_key`](Self::idempotency_key). An error made by
    /// [`ToolError::retry_after`] is not remembered: in a task the step runs again later. The value always comes back the way serde reads
    /// it, so that a first run and a replay see the same.
    ///
    /// # Errors
    /// What `effect` returned, or a value that serde cannot write or read.
    pub async fn step<T, E>(
        &self,
        key: impl AsRef<str>,
        effect: impl AsyncFnOnce() -> Result<T, E>,
    ) -> Result<T, ToolError>
    where
        T: Serialize + DeserializeOwned,
        E: Into<ToolError>,
    {
        match Claim::new(&self.call, key.as_ref(), Kind::Step).await {
            Claimed::Replayed(Kind::FailedStep, error) => Err(serde_json::from_str(error.get())?),
            Claimed::Replayed(_, value) => Ok(serde_json::from_str(value.get())?),
            Claimed::Fresh(mut held) => {
                held.begin_step().await;
                let result = in_step(&self.call, effect()).await.map_err(Into::into);
                match result {
                    Ok(value) => {
                        let raw = to_raw_value(&value)?;
                        let value = serde_json::from_str(raw.get())?;
                        held.commit(Kind::Step, raw).await;
                        Ok(value)
                    }
                    Err(error) => failed_step(held, error).await,
                }
            }
        }
    }

    /// Like [`step`](Self::step) for what cannot fail: a clock, randomness, configuration.
    ///
    /// # Panics
    /// When serde cannot write the value or read it back; the caller gets an internal error.
    pub async fn once<T>(&self, key: impl AsRef<str>, effect: impl AsyncFnOnce() -> T) -> T
    where
        T: Serialize + DeserializeOwned,
    {
        match Claim::new(&self.call, key.as_ref(), Kind::Once).await {
            Claimed::Replayed(_, value) => reread(&value, key.as_ref()),
            Claimed::Fresh(mut held) => {
                held.begin_step().await;
                let value = in_step(&self.call, effect()).await;
                let Ok(raw) = to_raw_value(&value) else {
                    panic!("the value of once(`{}`) cannot be written as JSON", key.as_ref())
                };
                let value = reread(&raw, key.as_ref());
                held.commit(Kind::Once, raw).await;
                value
            }
        }
    }

    /// Awaits something that is meant to run again in each round: a read without effects.
    pub async fn read<T>(&self, body: impl AsyncFnOnce() -> T) -> T {
        read(&self.call, body()).await
    }

    // Questions.

    /// Shows the user a form made from `T`, and waits for the answer.
    ///
    /// `T` is a flat struct: strings, numbers, booleans, unit enums, lists of unit enums, and
    /// options of those (ELIC-03, ELIC-04). Never ask for secrets this way (ELIC-05).
    pub async fn elicit<T>(&self, key: impl AsRef<str>, message: impl Into<String>) -> Answer<T>
    where
        T: DeserializeOwned + schemars::JsonSchema + 'static,
    {
        let form = self.call.server.form::<T>();
        let parse = |content: Value| serde_json::from_value(content).map_err(|e| e.to_string());
        self.form(key.as_ref(), &message.into(), &form, parse).await
    }

    /// Like [`elicit`](Self::elicit) with a schema that is only known at run time: an object with
    /// flat, primitive properties (ELIC-03). Keywords that a form cannot have are left out.
    pub async fn elicit_schema(
        &self,
        key: impl AsRef<str>,
        message: impl Into<String>,
        schema: Value,
    ) -> Answer<Value> {
        let form = elicit_schema::form_schema(&schema).and_then(|form| FormSchema::new(&form));
        self.form(key.as_ref(), &message.into(), &form, Ok).await
    }

    /// Asks the user to open a page, for whatever must not pass through the client (ELIC-06).
    ///
    /// [`Answer::Accepted`] means that the user agreed to open it, not that anything was finished
    /// there (ELIC-11). The URL is absolute, `https` except on a loopback host, and holds no secret
    /// and no personal data (ELIC-08).
    pub async fn elicit_url(
        &self,
        key: impl AsRef<str>,
        message: impl Into<String>,
        url: impl Into<String>,
    ) -> Answer<()> {
        let (key, url) = (key.as_ref(), url.into());
        if !uri::is_web_page(&url) {
            let text = format!("the URL of question `{key}` must be https, or http on loopback");
            return self.misuse(text).await;
        }
        let params = json!({ "mode": "url", "message": message.into(), "url": url });
        let missing = [Capability::UrlElicitation];
        let question = self.question(key, Kind::Elicitation, Some(params.to_string()), &missing);
        match self.elicitation(question).await.action {
            ElicitAction::Accept => Answer::Accepted(()),
            ElicitAction::Decline => Answer::Declined,
            ElicitAction::Cancel => Answer::Cancelled,
        }
    }

    /// Asks the client's model (deprecated by the specification, SAMP-01).
    pub async fn sample(&self, key: impl AsRef<str>, params: SampleParams) -> SampleResult {
        let key = key.as_ref();
        if let Err(fault) = params.check() {
            return self.misuse(format!("the sampling question `{key}` is wrong: {fault}")).await;
        }
        let mut needs = vec![Capability::Sampling];
        needs.extend(params.needs_tools().then_some(Capability::SamplingTools));
        needs.extend(params.needs_context().then_some(Capability::SamplingContext));
        let Ok(params) = serde_json::to_string(&params) else {
            return self.misuse(format!("the sampling question `{key}` is not JSON")).await;
        };
        self.answer(self.question(key, Kind::Sampling, Some(params), &needs)).await
    }

    /// Asks for the client's roots (deprecated by the specification, ROOT-04).
    pub async fn roots(&self, key: impl AsRef<str>) -> Vec<Root> {
        let question = self.question(key.as_ref(), Kind::Roots, None, &[Capability::Roots]);
        self.answer::<RootsResult>(question).await.roots
    }

    // Time.

    /// From here on the call goes on as a task, which outlives the request, if its client can hold
    /// one and the server has a store. Returns whether it is one now; if not, it goes on inside the
    /// request.
    ///
    /// `status` is what the client reads meanwhile. A call that is a task already only changes it.
    pub async fn background(&self, status: impl Into<String>) -> bool {
        background(&self.call, status.into()).await
    }

    /// Sleeps until a deadline that is drawn once, at the first use of `key`, and kept over rounds:
    /// beside a question in a `select!` it is a timeout that survives the round.
    ///
    /// In a task nothing is held meanwhile. Inside a request it sleeps up to 20 s
    /// ([`Limits::inline_sleep`](crate::Limits)); for longer sleeps without a question beside them the
    /// call is refused.
    pub async fn sleep(&self, key: impl AsRef<str>, duration: Duration) {
        match Claim::new(&self.call, key.as_ref(), Kind::Sleep).await {
            Claimed::Replayed(..) => {}
            Claimed::Fresh(held) => held.sleep(duration).await,
        }
    }

    /// When the first run of this call began; the same in every round.
    #[must_use]
    pub fn started_at(&self) -> Timestamp {
        self.call.engine().started_at()
    }

    /// When this request is cut off, if it is. A round started by an answer has a new deadline.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        self.call.deadline
    }

    /// A key for the other side of a step, the same in every round and every repetition of it.
    ///
    /// A client that sends its *first* request twice makes two calls with two keys.
    #[must_use]
    pub fn idempotency_key(&self, step: &str) -> String {
        let mut seed = self.call.run_id().to_vec();
        seed.extend_from_slice(step.as_bytes());
        encode(&digest(&SHA256, &seed).as_ref()[..24])
    }

    // To the client, beside the answer.

    /// Tells the client how far the call is, if it asked to be told (PROG-01).
    ///
    /// `done` must grow (PROG-03). At most one notification per 20 ms goes out; the newest always
    /// arrives. In a task the message becomes its status (TASK-35). Silent while the journal is
    /// replayed.
    pub fn progress(&self, done: f64, total: impl Into<Option<f64>>, message: &str) {
        {
            let mut engine = self.call.engine();
            if engine.is_replaying() {
                return;
            }
            if engine.is_in_task() {
                return engine.tell(message.to_owned());
            }
        }
        let now = self.call.platform().now();
        self.call.outbox().progress(now, done, total.into(), message);
    }

    /// Sends the client a log message, if it asked for this level and the server has
    /// [logging](crate::ServerBuilder::logging) (LOG-03). No secrets, no personal data (LOG-08).
    ///
    /// Silent while the journal is replayed.
    pub fn log(&self, level: LogLevel, data: impl Serialize) {
        if self.call.engine().is_replaying() {
            return;
        }
        match serde_json::to_value(data) {
            Ok(data) => self.call.outbox().log(level, &self.call.name, &data),
            Err(error) => tracing::warn!("a log message is not JSON: {error}"),
        }
    }

    // What is around the call.

    /// Whether the client declared a capability on this request, to offer alternatives before
    /// asking.
    #[must_use]
    pub fn can(&self, what: Capability) -> bool {
        self.call.capabilities.has(what)
    }

    /// The client's settings of an extension, if it declared it on this request (EXT-01).
    #[must_use]
    pub fn extension(&self, id: &str) -> Option<&RawValue> {
        self.call.capabilities.extension(id)
    }

    /// The application's own value, given to [`ServerBuilder::state`](crate::ServerBuilder::state).
    ///
    /// # Panics
    /// When no value of this type was given; the caller gets an internal error.
    #[must_use]
    pub fn state<T: 'static>(&self) -> &T {
        match self.call.server.state() {
            Some(state) => state,
            None => panic!(
                "no state of type {}: give it to ServerBuilder::state",
                std::any::type_name::<T>()
            ),
        }
    }

    /// Who is calling.
    #[must_use]
    pub fn principal(&self) -> &Principal {
        &self.call.principal
    }

    /// The trace context of the request, to pass on to what the handler calls (TRACE-03).
    #[must_use]
    pub fn trace_context(&self) -> Option<&TraceContext> {
        self.call.trace.as_deref()
    }

    /// Announces changes to listeners of this server, in the caller's tenant.
    #[must_use]
    pub fn publisher(&self) -> Publisher {
        self.call.server.publisher_of(&self.call.principal)
    }

    /// Whether the client can hold a task that names a job elsewhere. Within a task there is no place
    /// for another one.
    pub(crate) fn can_hold_job(&self) -> bool {
        !self.call.engine().is_in_task() && self.call.client_can_hold_task()
    }

    /// Waits until it is time to look at a job again.
    pub(crate) async fn wait_for_job(&self) {
        self.call.platform().sleep(self.call.server.limits().poll_interval).await;
    }

    // Non-generic halves.

    async fn form<T>(
        &self,
        key: &str,
        message: &str,
        form: &Form,
        parse: impl Fn(Value) -> Result<T, String>,
    ) -> Answer<T> {
        let FormSchema { json, schema } = match form {
            Ok(form) => form,
            Err(fault) => {
                return self.misuse(format!("the form of question `{key}`: {fault}")).await;
            }
        };
        let message = Value::from(message);
        let params = format!(r#"{{"mode":"form","message":{message},"requestedSchema":{json}}}"#);
        let question = || {
            let needs = [Capability::Elicitation];
            self.question(key, Kind::Elicitation, Some(params.clone()), &needs)
        };
        loop {
            let result = self.elicitation(question()).await;
            match result.action {
                ElicitAction::Decline => return Answer::Declined,
                ElicitAction::Cancel => return Answer::Cancelled,
                ElicitAction::Accept => {
                    let content = Value::Object(result.content.unwrap_or_default());
                    match judged(schema, content).and_then(&parse) {
                        Ok(content) => return Answer::Accepted(content),
                        Err(fault) => {
                            // ELIC-13: not what was asked for, so it is asked again.
                            tracing::debug!(key, "the answer does not fit the form: {fault}");
                            self.call.engine().retract(key);
                        }
                    }
                }
            }
        }
    }

    async fn elicitation(&self, question: Question) -> ElicitResult {
        let key = question.key.clone();
        let result: ElicitResult = self.answer(question).await;
        match result.check() {
            Ok(()) => result,
            Err(_) => self.fail(Fatal::BadAnswer { key }).await,
        }
    }

    async fn answer<T: DeserializeOwned>(&self, question: Question) -> T {
        let key = question.key.clone();
        let answer = ask(&self.call, question).await;
        match serde_json::from_str(answer.get()) {
            Ok(answer) => answer,
            Err(_) => self.fail(Fatal::BadAnswer { key }).await,
        }
    }

    fn question(
        &self,
        key: &str,
        kind: Kind,
        params: Option<String>,
        needs: &[Capability],
    ) -> Question {
        let missing = needs.iter().find_map(|need| self.call.capabilities.missing(*need));
        let whole = format!("{kind:?}{}", params.as_deref().unwrap_or_default());
        let mut id = Digest::default();
        id.copy_from_slice(&digest(&SHA256, whole.as_bytes()).as_ref()[..16]);
        Question { key: key.to_owned(), kind, digest: id, params, missing }
    }

    async fn misuse<T>(&self, text: String) -> T {
        self.fail(Fatal::Misuse(text)).await
    }

    /// Ends the run. The handler stays pending, so that it cannot swallow the reason.
    async fn fail<T>(&self, fatal: Fatal) -> T {
        self.call.engine().fail(fatal);
        std::future::pending().await
    }
}

/// A step that failed: remembered, unless it asks to be tried again later.
async fn failed_step<T>(held: Held<'_>, error: ToolError) -> Result<T, ToolError> {
    match error.retry_delay() {
        Some(delay) if held.is_in_task() => held.retry(delay).await,
        Some(_) => Err(error),
        None => {
            held.commit(Kind::FailedStep, to_raw_value(&error)?).await;
            Err(error)
        }
    }
}

/// The content of an answer, if it is what was asked for.
fn judged(schema: &Schema, content: Value) -> Result<Value, String> {
    match schema.validate(&content) {
        Ok(()) => Ok(content),
        Err(violations) => Err(schema::lines(&violations)),
    }
}

fn reread<T: DeserializeOwned>(raw: &RawValue, key: &str) -> T {
    match serde_json::from_str(raw.get()) {
        Ok(value) => value,
        Err(error) => panic!("the value of once(`{key}`) cannot be read back: {error}"),
    }
}

/// What the user did with a question (MRTR-27).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "the specification names exactly these three")]
pub enum Answer<T> {
    /// Answered it.
    Accepted(T),
    /// Said no.
    Declined,
    /// Closed it without a choice.
    Cancelled,
}

impl<T> Answer<T> {
    /// The answer, or an error that tells the model that the user did not give one.
    ///
    /// # Errors
    /// When the user declined or cancelled.
    pub fn required(self) -> Result<T, ToolError> {
        match self {
            Self::Accepted(answer) => Ok(answer),
            Self::Declined => Err(ToolError::new("The user declined.")),
            Self::Cancelled => Err(ToolError::new("The user cancelled.")),
        }
    }

    /// The answer, if there is one.
    pub fn accepted(self) -> Option<T> {
        match self {
            Self::Accepted(answer) => Some(answer),
            Self::Declined | Self::Cancelled => None,
        }
    }
}
