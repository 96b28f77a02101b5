//! A running server, and a client that sends exactly the bytes that a test wants.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use mcp_edge::{Cx, InProcessFeed, KeyRing, Limits, NoArgs, Server, ServerBuilder};
use mcp_edge_hyper::{ServeOptions, serve_with};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::{Notify, mpsc, oneshot},
    task::JoinHandle,
    time::timeout,
};

/// Longer than anything here should take, on any machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Fails the test if `future` hangs.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.expect("this hangs")
}

/// A server whose shutdown the test holds.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<()>,
}

impl Running {
    pub(crate) async fn start(server: Server, options: ServeOptions) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let shutdown = async move {
            let _ = stopped.await;
        };
        let served = tokio::spawn(serve_with(server, listener, options, shutdown));
        Self { address, stop: Some(stop), served }
    }

    /// What was started in another way.
    pub(crate) fn of(
        address: SocketAddr,
        stop: oneshot::Sender<()>,
        served: JoinHandle<()>,
    ) -> Self {
        Self { address, stop: Some(stop), served }
    }

    pub(crate) async fn with_defaults(server: Server) -> Self {
        Self::start(server, ServeOptions::default()).await
    }

    pub(crate) async fn connect(&self) -> Client {
        Client { stream: TcpStream::connect(self.address).await.unwrap(), buffer: Vec::new() }
    }

    /// Begins the shutdown.
    pub(crate) fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.served.is_finished()
    }

    /// Waits until `serve_with` has returned.
    pub(crate) async fn ended(self) {
        soon(self.served).await.unwrap();
    }
}

/// One connection, in bytes.
pub(crate) struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Client {
    pub(crate) async fn send(&mut self, text: impl AsRef<[u8]>) {
        self.stream.write_all(text.as_ref()).await.unwrap();
    }

    /// Sends as much as the server takes.
    pub(crate) async fn send_all_it_takes(&mut self, bytes: &[u8]) -> usize {
        let mut sent = 0;
        while sent < bytes.len() {
            match soon(self.stream.write(&bytes[sent..])).await {
                Ok(0) | Err(_) => break,
                Ok(written) => sent += written,
            }
        }
        sent
    }

    async fn fill(&mut self) -> bool {
        let mut piece = vec![0; 64 << 10];
        match soon(self.stream.read(&mut piece)).await {
            Ok(0) | Err(_) => false,
            Ok(read) => {
                self.buffer.extend_from_slice(&piece[..read]);
                true
            }
        }
    }

    /// Reads on until `text` has come, and returns everything up to its end.
    pub(crate) async fn read_until(&mut self, text: &str) -> String {
        loop {
            let found =
                self.buffer.windows(text.len()).position(|window| window == text.as_bytes());
            if let Some(start) = found {
                let read = self.buffer.drain(..start + text.len()).collect();
                return String::from_utf8(read).unwrap();
            }
            if !self.fill().await {
                let seen = String::from_utf8_lossy(&self.buffer[..self.buffer.len().min(2000)]);
                panic!("the connection ended before {text:?}: {seen}");
            }
        }
    }

    /// Reads some of what comes.
    pub(crate) async fn read_at_least(&mut self, bytes: usize) {
        while self.buffer.len() < bytes {
            assert!(self.fill().await, "the connection ended");
        }
        self.buffer.drain(..bytes);
    }

    /// Reads a response whose length is declared.
    pub(crate) async fn reply(&mut self) -> Reply {
        let head = self.read_until("\r\n\r\n").await;
        let status = head[9..12].parse().unwrap();
        let length = head
            .lines()
            .find_map(|line| {
                line.to_lowercase().strip_prefix("content-length: ").map(str::to_owned)
            })
            .map_or(0, |length| length.parse().unwrap());
        while self.buffer.len() < length {
            assert!(self.fill().await, "the connection ended inside the body of {head}");
        }
        let body = String::from_utf8(self.buffer.drain(..length).collect()).unwrap();
        Reply { status, head, body }
    }

    /// Whether the server closes the connection without another byte.
    pub(crate) async fn is_closed(&mut self) -> bool {
        self.buffer.is_empty() && !self.fill().await && self.buffer.is_empty()
    }

    /// Reads until the server closes the connection.
    pub(crate) async fn rest(&mut self) -> String {
        while self.fill().await {}
        String::from_utf8_lossy(&std::mem::take(&mut self.buffer)).into_owned()
    }

    /// Whether the server has closed the connection already.
    pub(crate) async fn is_closed_by_now(&mut self) -> bool {
        !self.is_quiet_for(Duration::ZERO).await && self.is_closed().await
    }

    /// Sends no more, and still reads.
    pub(crate) async fn close_sending(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    /// Whether nothing comes for a while.
    pub(crate) async fn is_quiet_for(&mut self, duration: Duration) -> bool {
        self.buffer.is_empty() && timeout(duration, self.stream.readable()).await.is_err()
    }
}

/// The head of a request up to its last line, without the empty one.
pub(crate) fn head(method: &str, tool: Option<&str>) -> String {
    let name = tool.map(|tool| format!("Mcp-Name: {tool}\r\n")).unwrap_or_default();
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: {method}\r\n{name}"
    )
}

fn meta(more: &str) -> String {
    format!(
        r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
        "io.modelcontextprotocol/clientCapabilities":{{}}{more}}}"#
    )
}

/// The body of a call without arguments.
pub(crate) fn call_body(tool: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call",
        "params":{{"name":"{tool}",{}}}}}"#,
        meta(r#","progressToken":7"#)
    )
}

/// A whole request.
pub(crate) fn call(tool: &str) -> String {
    with_body(&head("tools/call", Some(tool)), &call_body(tool))
}

/// A whole request that listens to changes of the tools.
pub(crate) fn listen() -> String {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":"L","method":"subscriptions/listen",
        "params":{{"notifications":{{"toolsListChanged":true}},{}}}}}"#,
        meta("")
    );
    with_body(&head("subscriptions/listen", None), &body)
}

pub(crate) fn with_body(head: &str, body: &str) -> String {
    format!("{head}Content-Length: {}\r\n\r\n{body}", body.len())
}

pub(crate) const HEALTH: &str = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// What a test and its handlers tell each other.
#[derive(Clone)]
pub(crate) struct Probe {
    /// Told when a handler waits.
    entered: mpsc::UnboundedSender<()>,
    /// Told when a waiting handler is dropped unfinished.
    dropped: mpsc::UnboundedSender<Instant>,
    /// Lets a waiting handler finish.
    pub(crate) finish: Arc<Notify>,
}

/// The test's end of a [`Probe`].
pub(crate) struct Seen {
    entered: mpsc::UnboundedReceiver<()>,
    dropped: mpsc::UnboundedReceiver<Instant>,
}

impl Seen {
    pub(crate) async fn entered(&mut self) {
        soon(self.entered.recv()).await.unwrap();
    }

    pub(crate) async fn dropped(&mut self) -> Instant {
        soon(self.dropped.recv()).await.unwrap()
    }

    pub(crate) fn nothing_dropped(&mut self) -> bool {
        self.dropped.try_recv().is_err()
    }
}

struct TellsWhenDropped(Option<mpsc::UnboundedSender<Instant>>);

impl Drop for TellsWhenDropped {
    fn drop(&mut self) {
        if let Some(dropped) = &self.0 {
            let _ = dropped.send(Instant::now());
        }
    }
}

impl Probe {
    pub(crate) fn new() -> (Self, Seen) {
        let (entered, entered_seen) = mpsc::unbounded_channel();
        let (dropped, dropped_seen) = mpsc::unbounded_channel();
        let probe = Self { entered, dropped, finish: Arc::new(Notify::new()) };
        (probe, Seen { entered: entered_seen, dropped: dropped_seen })
    }

    async fn wait(&self) -> &'static str {
        let mut guard = TellsWhenDropped(Some(self.dropped.clone()));
        self.entered.send(()).unwrap();
        self.finish.notified().await;
        guard.0 = None;
        "finished"
    }
}

/// The size of a large answer: more than the system buffers.
pub(crate) const LARGE: usize = 16 << 20;

/// The tools of every test: `hello`, `large`, `panics`, `waits` in silence, `streams` and then waits.
pub(crate) fn builder(probe: Probe) -> ServerBuilder {
    let waiting = Arc::new(Mutex::new(probe));
    let streaming = Arc::clone(&waiting);
    Server::builder("test", "1")
        .tool("hello", "Greets", async |_: NoArgs| "Hello!")
        .tool("large", "Answers at length", async |_: NoArgs| "x".repeat(LARGE))
        .tool("panics", "Panics", async |_: NoArgs| {
            if true {
                panic!("as it should");
            }
            ""
        })
        .tool("waits", "Waits", move |_: NoArgs| {
            let probe = waiting.lock().unwrap().clone();
            async move { probe.wait().await }
        })
        .tool("streams", "Emits, then waits", move |cx: Cx, _: NoArgs| {
            let probe = streaming.lock().unwrap().clone();
            async move {
                cx.progress(1.0, None, "begun");
                probe.wait().await
            }
        })
        .sealer(KeyRing::new(1, &[7; 32]))
        .change_feed(InProcessFeed::default())
}

pub(crate) fn server() -> Server {
    builder(Probe::new().0).build().unwrap()
}

pub(crate) fn large_answers() -> Limits {
    let mut limits = Limits::default();
    limits.response_bytes = 2 * LARGE;
    limits
}

pub(crate) fn small_bodies(bytes: usize) -> Limits {
    let mut limits = Limits::default();
    limits.body_bytes = bytes;
    limits
}
