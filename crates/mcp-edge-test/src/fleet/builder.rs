//! What a fleet is made of.

use std::{env, ffi::OsString, io, net::Ipv4Addr, sync::Arc, time::Duration};

use tokio::{net::TcpListener, sync::mpsc, task::JoinSet};

use crate::fleet::{
    Fleet, FleetError, Routing, Shared,
    pool::{Pool, Spare},
    process::{Program, Starter},
    proxy,
};

/// What a [`Fleet`] is made of; see there. Made by [`Fleet::builder`].
#[derive(Debug)]
#[must_use = "it does nothing before `start`"]
pub struct FleetBuilder {
    program: Program,
    resident: Option<Program>,
    environment: Vec<(OsString, OsString)>,
    instances: usize,
    routing: Routing,
    port: u16,
    start_limit: Duration,
    end_limit: Duration,
}

impl FleetBuilder {
    pub(crate) const fn new(program: OsString) -> Self {
        Self {
            program: Program { path: program, args: Vec::new() },
            resident: None,
            environment: Vec::new(),
            instances: 3,
            routing: Routing::RoundRobin,
            port: 0,
            start_limit: Duration::from_secs(30),
            end_limit: Duration::from_secs(15),
        }
    }

    /// Adds an argument of the program, before `--port 0`.
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.program.args.push(arg.into());
        self
    }

    /// Adds arguments of the program, before `--port 0`.
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.program.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable of each process.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// How many processes serve, 3 by default; with [`Routing::Fresh`] how many are kept ready.
    pub const fn instances(mut self, instances: usize) -> Self {
        self.instances = instances;
        self
    }

    /// Which process gets a request; [`Routing::RoundRobin`] by default.
    pub const fn routing(mut self, routing: Routing) -> Self {
        self.routing = routing;
        self
    }

    /// Starts one more process, which is given no requests: it is there for what goes on between
    /// them. It is started as the others are, and prints its URL too.
    pub fn resident(
        mut self,
        program: impl Into<OsString>,
        args: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Self {
        let args = args.into_iter().map(Into::into).collect();
        self.resident = Some(Program { path: program.into(), args });
        self
    }

    /// The port of the proxy on 127.0.0.1; by default 0, which takes any that is free.
    pub const fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// How long a process may take to print its URL; 30 s by default.
    pub const fn start_limit(mut self, limit: Duration) -> Self {
        self.start_limit = limit;
        self
    }

    /// How long a process may take to end after SIGTERM before it is killed; 15 s by default.
    pub const fn end_limit(mut self, limit: Duration) -> Self {
        self.end_limit = limit;
        self
    }

    /// Starts the processes and the proxy, and returns when they serve.
    ///
    /// # Errors
    /// When there are to be no instances, a process does not start, or the port is taken.
    pub async fn start(self) -> Result<Fleet, FleetError> {
        if self.instances == 0 {
            return Err(FleetError::Empty);
        }
        let environment = with_defaults(self.environment);
        let starter = Starter::new(self.program, environment, self.start_limit, self.end_limit);
        // All at once, then one after the other.
        let resident = self.resident.map(|program| starter.launch(&program)).transpose()?;
        let launched: Result<Vec<_>, _> =
            (0..self.instances).map(|_| starter.launch_instance()).collect();
        let mut processes = Vec::new();
        for launched in launched? {
            processes.push(starter.ready(launched).await?);
        }
        if let Some(resident) = resident {
            starter.keep_resident(resident).await?;
        }

        // Only now, so that whoever waits for the port finds a fleet that serves.
        let socket = |source: io::Error| FleetError::Proxy { source };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, self.port)).await.map_err(socket)?;
        let address = listener.local_addr().map_err(socket)?;
        let path = processes.first().map_or("/", |process| process.path.as_str());
        let url = format!("http://{address}{path}");
        let (spares, taken) = mpsc::channel(self.instances);
        let pool = Pool::new(self.routing, processes, &spares, taken);
        let shared = Arc::new(Shared { starter, pool, served: Default::default() });
        let mut workers = JoinSet::new();
        if self.routing == Routing::Fresh {
            for _ in 0..self.instances {
                workers.spawn(keep_spares(Arc::clone(&shared), spares.clone()));
            }
        }
        let mut proxy = JoinSet::new();
        proxy.spawn(proxy::run(listener, Arc::clone(&shared)));
        Ok(Fleet { url, shared, workers, proxy })
    }
}

/// Puts a process into each place that becomes free. One that does not start takes a place as well,
/// so that a request hears of it and nothing is tried in a loop.
async fn keep_spares(shared: Arc<Shared>, spares: mpsc::Sender<Spare>) {
    while let Ok(place) = spares.reserve().await {
        place.send(shared.starter.start().await);
    }
}

fn with_defaults(mut environment: Vec<(OsString, OsString)>) -> Vec<(OsString, OsString)> {
    if env::var_os(KEYS).is_none() && environment.iter().all(|(name, _)| name != KEYS) {
        environment.push((KEYS.into(), KEY.into()));
    }
    environment.push((PROCESS_ID.into(), "1".into()));
    environment
}

const KEYS: &str = "MCP_EDGE_KEYS";

/// The key of all tests, as servers in the same process have it.
const KEY: &str = "0:fn5-fn5-fn5-fn5-fn5-fn5-fn5-fn5-fn5-fn5-fn4";

/// Asks a server to say which process answers.
const PROCESS_ID: &str = "MCP_EDGE_TEST_PROCESS_ID";
