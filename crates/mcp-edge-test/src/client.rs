//! The client: what it is made of, and how it is set up.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicU64},
};

use http::{HeaderMap, HeaderName, HeaderValue, header};
use mcp_edge::{Server, protocol::LogLevel};
use serde_json::Value;

use crate::{
    answers::{Answer, Answers, Question},
    check::TaskMemory,
    platform::TestPlatform,
    request::all_capabilities,
    transport::{Instances, Remote, Transport},
};

/// A client of revision 2026-07-28 that sends exactly what a conforming client sends, and refuses
/// what one must refuse.
///
/// It is made for servers in the same process or behind a URL, and set up by methods that take and
/// return it. Clones share ids, learned tools, and what they saw of tasks.
///
/// ```
/// use mcp_edge::{Answer, Cx, KeyRing, NoArgs, Server};
/// use mcp_edge_test::Client;
/// use serde_json::json;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Name {
///     name: String,
/// }
///
/// async fn greet(cx: Cx, _: NoArgs) -> String {
///     match cx.elicit::<Name>("name", "Who are you?").await {
///         Answer::Accepted(Name { name }) => format!("Hello, {name}!"),
///         _ => "Hello, whoever you are!".to_owned(),
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Server::builder("greeter", "1.0.0")
///     .tool("greet", "Greets you", greet)
///     .build()?
///     .with_sealer(KeyRing::new(1, &[7; 32]));
///
/// let client = Client::in_process(&server).strict().answer("name", json!({"name": "Ada"}));
/// let greeting = client.call("greet", ()).await?;
/// assert_eq!(greeting.text(), "Hello, Ada!");
/// assert_eq!(greeting.rounds[0][0].message(), "Who are you?");
///
/// let greeting = Client::in_process(&server).decline("name").call("greet", ()).await?;
/// assert_eq!(greeting.text(), "Hello, whoever you are!");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    pub(crate) door: Door,
    pub(crate) options: Options,
    pub(crate) shared: Arc<Shared>,
}

/// Where requests go.
#[derive(Clone, Debug)]
pub(crate) enum Door {
    InProcess(Instances),
    Other(Arc<dyn Transport>),
    /// There is nothing behind the URL, for this reason.
    Closed,
}

/// What can be chosen.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) capabilities: Value,
    /// Declares tasks, whatever the capabilities.
    pub(crate) tasks: bool,
    /// Beside those that every request has, or instead of them.
    pub(crate) headers: HeaderMap,
    pub(crate) accept: HeaderValue,
    pub(crate) log_level: Option<LogLevel>,
    pub(crate) progress: bool,
    pub(crate) answers: Answers,
    pub(crate) max_rounds: usize,
    pub(crate) strict: bool,
    /// The first thing that was asked for and cannot be done.
    pub(crate) misuse: Option<String>,
}

/// What clones share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) next_id: AtomicU64,
    /// The input schemas of the tools that were listed, by name.
    tools: Mutex<HashMap<String, Value>>,
    tasks: Mutex<TaskMemory>,
}

impl Client {
    /// Makes a client of a server in this process. No socket is involved, and nothing is spawned:
    /// the handler runs while the test awaits the call.
    ///
    /// Requests carry `Host: localhost`. A server without keys gets one, the same for all of them:
    /// adapters bring keys along, and a test need not.
    #[must_use]
    pub fn in_process(server: &Server) -> Self {
        Self::fleet([server.clone()])
    }

    /// Makes a client of several instances in this process, each request of which goes to another
    /// one in turn, as behind a load balancer that keeps nobody in one place.
    ///
    /// ```
    /// use mcp_edge::{KeyRing, NoArgs, Server};
    /// use mcp_edge_test::Client;
    ///
    /// fn instance() -> Server {
    ///     let server = Server::builder("one of three", "1.0.0")
    ///         .tool("hello", "Says hello", async |_: NoArgs| "hello")
    ///         .build();
    ///     server.unwrap().with_sealer(KeyRing::new(1, &[7; 32]))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), mcp_edge_test::CallError> {
    /// let client = Client::fleet([instance(), instance(), instance()]);
    /// assert_eq!(client.call("hello", ()).await?.text(), "hello");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn fleet(servers: impl IntoIterator<Item = Server>) -> Self {
        Self::new(Door::InProcess(Instances::new(servers)))
    }

    /// Makes a client of a server behind an `http:` URL, which names the endpoint. Connections are
    /// kept and used again.
    ///
    /// A URL that is none makes every call fail.
    #[must_use]
    pub fn url(url: &str) -> Self {
        match Remote::new(url) {
            Ok(remote) => Self::new(Door::Other(Arc::new(remote))),
            Err(fault) => Self::new(Door::Closed).with_misuse(fault),
        }
    }

    #[cfg(test)]
    pub(crate) fn over(transport: impl Transport + 'static) -> Self {
        Self::new(Door::Other(Arc::new(transport)))
    }

    fn new(door: Door) -> Self {
        let options = Options {
            capabilities: all_capabilities(),
            tasks: false,
            headers: HeaderMap::new(),
            accept: HeaderValue::from_static("application/json, text/event-stream"),
            log_level: None,
            progress: false,
            answers: Answers::default(),
            max_rounds: 32,
            strict: false,
            misuse: None,
        };
        let shared =
            Shared { next_id: AtomicU64::new(1), tools: Mutex::default(), tasks: Mutex::default() };
        Self { door, options, shared: Arc::new(shared) }
    }

    // What each request says.

    /// Declares these capabilities, a `ClientCapabilities` object. By default all of the
    /// specification are declared, and no extension. See [`with_tasks`](Self::with_tasks) as well.
    #[must_use]
    pub fn capabilities(mut self, capabilities: Value) -> Self {
        self.options.capabilities = capabilities;
        self
    }

    /// Declares tasks (`io.modelcontextprotocol/tasks`), beside the capabilities. A call that becomes
    /// a task is [followed](Self::follow) to its end; whether it does is for the server to decide.
    ///
    /// ```
    /// use mcp_edge::{NoArgs, Server};
    /// use mcp_edge_test::Client;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Server::builder("quick", "1.0.0")
    ///     .tool("hello", "Says hello", async |_: NoArgs| "hello")
    ///     .build()?;
    /// let called = Client::in_process(&server).with_tasks().call("hello", ()).await?;
    /// assert_eq!((called.text().as_str(), called.task_id), ("hello", None));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_tasks(mut self) -> Self {
        self.options.tasks = true;
        self
    }

    /// Sets a header of every request, in place of the client's own of that name.
    #[must_use]
    pub fn header(mut self, name: impl AsRef<str>, value: impl AsRef<str>) -> Self {
        let (name, value) = (name.as_ref(), value.as_ref());
        match (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value)) {
            (Ok(name), Ok(value)) => {
                self.options.headers.insert(name, value);
                self
            }
            (Err(_), _) => self.with_misuse(format!("`{name}` is not the name of a header")),
            (_, Err(_)) => self.with_misuse(format!("header {name} cannot have this value")),
        }
    }

    /// Sends a bearer token.
    #[must_use]
    pub fn bearer(self, token: impl AsRef<str>) -> Self {
        self.header(header::AUTHORIZATION, format!("Bearer {}", token.as_ref()))
    }

    /// Accepts these media types, by default `application/json, text/event-stream`.
    #[must_use]
    pub fn accept(self, types: &str) -> Self {
        match HeaderValue::from_str(types) {
            Ok(accept) => Self { options: Options { accept, ..self.options }, ..self },
            Err(_) => self.with_misuse(format!("Accept cannot be {types:?}")),
        }
    }

    /// Asks for log messages of this level and above.
    #[must_use]
    pub fn log_level(mut self, level: LogLevel) -> Self {
        self.options.log_level = Some(level);
        self
    }

    /// Asks for progress.
    #[must_use]
    pub fn with_progress(mut self) -> Self {
        self.options.progress = true;
        self
    }

    // How questions are answered.

    /// Answers the question with this key, each time it is asked.
    ///
    /// `value` is the content of a form, which is accepted with it. A page to open is accepted
    /// whatever the value. Of a sampling request and of roots it is the whole result.
    #[must_use]
    pub fn answer(self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.with_answer(key.into(), Answer::Value(value.into()))
    }

    /// Declines the elicitation with this key.
    #[must_use]
    pub fn decline(self, key: impl Into<String>) -> Self {
        self.with_answer(key.into(), Answer::Decline)
    }

    /// Cancels the elicitation with this key.
    #[must_use]
    pub fn cancel(self, key: impl Into<String>) -> Self {
        self.with_answer(key.into(), Answer::Cancel)
    }

    /// Answers questions whose key has no answer of its own. What the closure returns is the whole
    /// result, see [`Question::accept`] and its like; `None` leaves the question to closures that
    /// were given before.
    #[must_use]
    pub fn on_question(
        mut self,
        answer: impl Fn(&Question) -> Option<Value> + Send + Sync + 'static,
    ) -> Self {
        self.options.answers.add_closure(answer);
        self
    }

    /// Gives up a call that takes more than `rounds` rounds of questions. Default 32, so that the
    /// server's own limit shows first.
    #[must_use]
    pub fn max_rounds(mut self, rounds: usize) -> Self {
        self.options.max_rounds = rounds;
        self
    }

    // What the servers run on.

    /// Runs the servers on this platform. In process only.
    #[must_use]
    pub fn platform(mut self, platform: TestPlatform) -> Self {
        if let Door::InProcess(instances) = &mut self.door {
            instances.platform = platform;
            return self;
        }
        self.with_misuse("a platform can be given to servers in this process only")
    }

    /// Makes sure that handlers replay. In process only.
    ///
    /// What the journal would only hint at in the log fails the call: a plain await before a
    /// question, an answer that nobody reads. And each time the server asks, the call is replayed
    /// twice without answers: the same questions must come back, under the same keys. This finds
    /// keys and texts made from clocks, counters and random numbers.
    ///
    /// For the server a replay is one more round: a call that uses up its limit fails here.
    #[must_use]
    pub fn strict(mut self) -> Self {
        if let Door::InProcess(instances) = &mut self.door {
            let servers = std::mem::take(&mut instances.servers);
            instances.servers = servers.into_iter().map(Server::with_replay_lints_denied).collect();
            self.options.strict = true;
            return self;
        }
        self.with_misuse("only servers in this process can be tested strictly")
    }

    fn with_answer(mut self, key: String, answer: Answer) -> Self {
        self.options.answers.add(key, answer);
        self
    }

    fn with_misuse(mut self, text: impl Into<String>) -> Self {
        self.options.misuse.get_or_insert_with(|| text.into());
        self
    }

    pub(crate) fn transport(&self) -> Option<&dyn Transport> {
        match &self.door {
            Door::InProcess(instances) => Some(instances),
            Door::Other(transport) => Some(transport.as_ref()),
            Door::Closed => None,
        }
    }
}

impl Shared {
    /// The input schemas of the tools that are known.
    pub(crate) fn tools(&self) -> MutexGuard<'_, HashMap<String, Value>> {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of tasks.
    pub(crate) fn tasks(&self) -> MutexGuard<'_, TaskMemory> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("door", &self.door).finish_non_exhaustive()
    }
}
