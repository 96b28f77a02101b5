//! From a server to a listener that answers, and back.

use std::{
    env::VarError,
    fmt,
    future::poll_fn,
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use mcp_edge::{InProcessFeed, KeyRing, KeyRingError, Server};
use tokio::{
    net::{TcpListener, ToSocketAddrs},
    task::JoinSet,
    time::{Sleep, sleep},
};

use crate::{connection::Http, options::ServeOptions, tasks::Serving};

/// Serves `server` at `address` until the process is told to stop (SIGINT or SIGTERM; elsewhere
/// ctrl-c), then shuts down gracefully as [`serve_with`] does.
///
/// It brings along what the server does not have:
///
/// - keys, from the environment variable `MCP_EDGE_KEYS` in the format of [`KeyRing::parse`].
///   Without that, on a loopback address, it draws a key and warns that what was sealed with it is
///   lost at a restart;
/// - the name of the deployment, from `MCP_EDGE_AUDIENCE`;
/// - an [`InProcessFeed`], so changes reach the listeners of this process.
///
/// # Errors
/// When the address cannot be bound; and, so that nobody finds out from a client, when keys are
/// missing or ill-formed, or when a server behind a public address would refuse every caller.
pub async fn serve(
    server: impl Into<Serving>,
    address: impl ToSocketAddrs,
) -> Result<(), ServeError> {
    serve_on(server, TcpListener::bind(address).await.map_err(ServeError::Bind)?).await
}

/// Does what [`serve`] does on a listener that is bound already, so that the caller knows its
/// address.
///
/// # Errors
/// As [`serve`].
pub async fn serve_on(server: impl Into<Serving>, listener: TcpListener) -> Result<(), ServeError> {
    serve_on_with(server, listener, ServeOptions::default()).await
}

/// Does what [`serve_on`] does, with times, bounds and response headers of the caller's choice.
///
/// # Errors
/// As [`serve`].
pub async fn serve_on_with(
    server: impl Into<Serving>,
    listener: TcpListener,
    options: ServeOptions,
) -> Result<(), ServeError> {
    let Serving { server, runner } = server.into();
    let address = listener.local_addr().map_err(ServeError::Bind)?;
    let server = prepare(server, address, |name| std::env::var(name))?;
    let signals = signals().map_err(ServeError::Signals)?;
    tracing::info!("listening on http://{address}{}", server.endpoint());
    serve_with(Serving { server, runner }, listener, options, signals).await;
    Ok(())
}

/// Serves `server` on a bound listener until `shutdown` resolves, then shuts down gracefully.
///
/// The server is taken as it is: without keys its questions fail, without a feed it advertises no
/// changes. Neither the environment nor signals are looked at.
///
/// **Shutdown.** At once `/healthz` answers 503, listen streams end with their final message, and
/// idle connections are closed. While calls are under way, new connections may still send one
/// request each, so that a load balancer sees the 503. It returns when all have ended; what is left
/// after the [grace period](ServeOptions::grace) is dropped. Tasks are left at their next step, for
/// another instance to go on with.
pub async fn serve_with(
    server: impl Into<Serving>,
    listener: TcpListener,
    options: ServeOptions,
    shutdown: impl Future<Output = ()>,
) {
    let Serving { server, runner } = server.into();
    let grace = options.grace;
    let http = Arc::new(Http::new(server.clone(), options));
    let mut tasks = JoinSet::new();
    if let Some(runner) = runner {
        let http = Arc::clone(&http);
        tasks.spawn(async move { runner.run(server, http.drained()).await });
    }
    let mut listening =
        Listening { listener, connections: JoinSet::new(), pause: None, http: Arc::clone(&http) };
    let mut shutdown = pin!(shutdown);
    poll_fn(|cx| {
        listening.poll(cx);
        shutdown.as_mut().poll(cx)
    })
    .await;
    http.drain();
    tracing::info!("shutting down");
    let mut grace = pin!(sleep(grace));
    poll_fn(|cx| {
        listening.poll(cx);
        let tasks_ended = tasks.is_empty() || tasks.poll_join_next(cx).is_ready();
        if listening.connections.is_empty() && tasks_ended {
            return Poll::Ready(());
        }
        grace.as_mut().poll(cx)
    })
    .await;
    if !listening.connections.is_empty() {
        let count = listening.connections.len();
        tracing::warn!(count, "connections were cut at the end of the grace period");
        listening.connections.shutdown().await;
    }
}

/// A listener and its connections.
struct Listening {
    listener: TcpListener,
    connections: JoinSet<()>,
    /// Runs while nothing is accepted, after an error.
    pause: Option<Pin<Box<Sleep>>>,
    http: Arc<Http>,
}

impl Listening {
    /// Takes leave of connections that ended, and accepts new ones as long as there is room.
    fn poll(&mut self, cx: &mut Context<'_>) {
        loop {
            while let Poll::Ready(Some(ended)) = self.connections.poll_join_next(cx) {
                if let Err(error) = ended {
                    tracing::error!("a connection failed: {error}");
                }
            }
            if self.pause.as_mut().is_some_and(|pause| pause.as_mut().poll(cx).is_pending()) {
                return;
            }
            self.pause = None;
            if self.connections.len() >= self.http.max_connections() {
                return;
            }
            match self.listener.poll_accept(cx) {
                Poll::Pending => return,
                Poll::Ready(Ok((stream, _))) => {
                    let late = self.http.is_draining();
                    self.connections.spawn(Arc::clone(&self.http).serve(stream, late));
                }
                Poll::Ready(Err(error)) => self.failed(&error),
            }
        }
    }

    fn failed(&mut self, error: &io::Error) {
        use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
        if !matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
            // Mostly there are no more file descriptors, and an attempt at once would fail as well.
            tracing::error!("cannot accept a connection: {error}");
            self.pause = Some(Box::pin(sleep(PAUSE)));
        }
    }
}

/// Checks and completes a server for an address.
fn prepare(
    mut server: Server,
    address: SocketAddr,
    variable: impl Fn(&str) -> Result<String, VarError>,
) -> Result<Server, ServeError> {
    let is_loopback = address.ip().to_canonical().is_loopback();
    if !is_loopback && !server.knows_its_callers() {
        return Err(ServeError::NoCallers { address });
    }
    if !server.has_sealer() {
        let keys = match variable(KEYS) {
            Ok(keys) => KeyRing::parse(&keys).map_err(ServeError::Keys)?,
            Err(VarError::NotUnicode(keys)) => {
                KeyRing::parse(&keys.to_string_lossy()).map_err(ServeError::Keys)?
            }
            Err(VarError::NotPresent) if is_loopback => draw()?,
            Err(VarError::NotPresent) => {
                KeyRing::parse("").map_err(|remedy| ServeError::NoKeys { address, remedy })?
            }
        };
        server = server.with_sealer(keys);
    }
    if let Ok(audience) = variable(AUDIENCE) {
        server = server.with_audience(audience);
    }
    // Before the first request, rather than in the middle of one.
    getrandom::getrandom(&mut [0]).map_err(|error| ServeError::Randomness(error.into()))?;
    if !server.has_change_feed() {
        server = server.with_change_feed(InProcessFeed::default());
    }
    Ok(server)
}

/// A ring of one key that nobody else has.
fn draw() -> Result<KeyRing, ServeError> {
    let mut key = [0; 32];
    getrandom::getrandom(&mut key).map_err(|error| ServeError::Randomness(error.into()))?;
    if let Err(remedy) = KeyRing::parse("") {
        tracing::warn!(
            "{KEYS} is not set: {remedy}. Until then a random key serves, and states that it \
             sealed do not survive a restart"
        );
    }
    Ok(KeyRing::new(0, &key))
}

/// Resolves when the process is told to stop.
fn signals() -> io::Result<impl Future<Output = ()>> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut signals = [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?];
        Ok(poll_fn(move |cx| {
            let came = signals.iter_mut().any(|signal| signal.poll_recv(cx).is_ready());
            if came { Poll::Ready(()) } else { Poll::Pending }
        }))
    }
    #[cfg(not(unix))]
    Ok(async {
        if let Err(error) = tokio::signal::ctrl_c().await {
            tracing::error!("cannot wait for ctrl-c: {error}");
            std::future::pending().await
        }
    })
}

/// Why [`serve`] did not begin to serve.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServeError {
    /// The address cannot be bound.
    Bind(io::Error),
    /// `MCP_EDGE_KEYS` is ill-formed.
    Keys(KeyRingError),
    /// The address is public, and the server accepts local callers alone.
    NoCallers {
        /// What would have been served.
        address: SocketAddr,
    },
    /// The address is public, and there are no keys.
    NoKeys {
        /// What would have been served.
        address: SocketAddr,
        /// How to make a key.
        remedy: KeyRingError,
    },
    /// The system gives no random bytes.
    Randomness(io::Error),
    /// The system does not tell when to stop.
    Signals(io::Error),
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bind(_) => f.write_str("the address cannot be bound"),
            Self::Keys(error) => write!(f, "{KEYS} is set and ill-formed: {error}"),
            Self::NoCallers { address } => write!(
                f,
                "{address} is not a loopback address and the server does not say who may call, so \
                 every caller would get a 403; list the origins of browsers with \
                 `ServerBuilder::allow_origins`, or none: `allow_origins([])`"
            ),
            Self::NoKeys { address, remedy } => write!(
                f,
                "{address} is not a loopback address and {KEYS} is not set: {remedy}; every \
                 instance needs the same"
            ),
            Self::Randomness(_) => f.write_str("the system gives no random bytes"),
            Self::Signals(_) => f.write_str("the system does not tell when to stop"),
        }
    }
}

impl std::error::Error for ServeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Bind(error) | Self::Randomness(error) | Self::Signals(error) => Some(error),
            // Their texts are repeated above.
            Self::Keys(_) | Self::NoCallers { .. } | Self::NoKeys { .. } => None,
        }
    }
}

/// Where keys come from.
const KEYS: &str = "MCP_EDGE_KEYS";

/// Where the name of the deployment comes from.
const AUDIENCE: &str = "MCP_EDGE_AUDIENCE";

/// How long nothing is accepted after an error.
const PAUSE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use mcp_edge::ServerBuilder;

    use super::*;

    const LOOPBACK: [&str; 3] = ["127.0.0.1:80", "[::1]:80", "[::ffff:127.0.0.1]:80"];
    const PUBLIC: [&str; 3] = ["0.0.0.0:80", "[::]:80", "192.0.2.1:80"];
    const GOOD: &str = "1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";

    fn builder() -> ServerBuilder {
        Server::builder("test", "1")
    }

    fn prepared(
        builder: ServerBuilder,
        address: &str,
        keys: &Result<&str, VarError>,
    ) -> Result<Server, String> {
        let server = builder.build().unwrap();
        let variable = |name: &str| match name {
            "MCP_EDGE_KEYS" => keys.clone().map(str::to_owned),
            "MCP_EDGE_AUDIENCE" => Err(VarError::NotPresent),
            name => panic!("{name} was asked for"),
        };
        prepare(server, address.parse().unwrap(), variable).map_err(|error| error.to_string())
    }

    const UNSET: Result<&str, VarError> = Err(VarError::NotPresent);

    #[test]
    fn a_local_server_needs_nothing() {
        for address in LOOPBACK {
            let server = prepared(builder(), address, &UNSET).unwrap();
            assert!(server.has_sealer() && server.has_change_feed(), "{address}");
        }
    }

    #[test]
    fn a_local_server_without_keys_is_warned_of() {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .without_time()
            .with_writer(move || writer.clone())
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            prepared(builder(), LOOPBACK[0], &UNSET).unwrap();
        });
        let log = log.0.lock().unwrap();
        assert_eq!(
            String::from_utf8_lossy(&log),
            " WARN mcp_edge_hyper::serve: MCP_EDGE_KEYS is not set: there is no key; write `1:` \
             and the output of `openssl rand 32 | basenc --base64url`. Until then a random key \
             serves, and states that it sealed do not survive a restart\n"
        );
    }

    #[derive(Clone, Default)]
    struct Log(Arc<std::sync::Mutex<Vec<u8>>>);

    impl io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_public_server_needs_keys() {
        for address in PUBLIC {
            let refused = prepared(builder().allow_origins([]), address, &UNSET).unwrap_err();
            assert_eq!(
                refused,
                format!(
                    "{address} is not a loopback address and MCP_EDGE_KEYS is not set: there is no \
                     key; write `1:` and the output of `openssl rand 32 | basenc --base64url`; \
                     every instance needs the same"
                )
            );
            let server = prepared(builder().allow_origins([]), address, &Ok(GOOD)).unwrap();
            assert!(server.has_sealer() && server.has_change_feed(), "{address}");
        }
    }

    #[test]
    fn a_public_server_says_who_may_call() {
        let refused = prepared(builder(), "0.0.0.0:80", &Ok(GOOD)).unwrap_err();
        assert_eq!(
            refused,
            "0.0.0.0:80 is not a loopback address and the server does not say who may call, so \
             every caller would get a 403; list the origins of browsers with \
             `ServerBuilder::allow_origins`, or none: `allow_origins([])`"
        );
        let server = builder().allow_hosts(["mcp.example.com"]);
        assert!(prepared(server, "0.0.0.0:80", &Ok(GOOD)).is_ok());
    }

    #[test]
    fn ill_formed_keys_are_refused_everywhere() {
        let not_unicode = VarError::NotUnicode(OsString::from("1:x"));
        for keys in [Ok(""), Ok("1:short"), Ok("x"), Err(not_unicode)] {
            let refused = prepared(builder(), LOOPBACK[0], &keys).unwrap_err();
            assert!(refused.starts_with("MCP_EDGE_KEYS is set and ill-formed: "), "{refused}");
            assert!(refused.contains("openssl rand 32"), "{refused}");
        }
    }

    #[test]
    fn a_server_with_keys_of_its_own_does_not_look_for_others() {
        let server = builder().sealer(KeyRing::new(1, &[0; 32])).allow_origins([]).build().unwrap();
        let address = "0.0.0.0:80".parse().unwrap();
        let prepared = prepare(server, address, |name| match name {
            "MCP_EDGE_AUDIENCE" => Ok("staging".to_owned()),
            name => panic!("{name} was asked for"),
        });
        assert!(prepared.is_ok());
    }
}
