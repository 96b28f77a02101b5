//! Starting processes, and ending them.

use std::{
    collections::{BTreeMap, VecDeque},
    ffi::OsString,
    io,
    net::SocketAddr,
    process::Stdio,
    sync::{Arc, Mutex},
    time::Duration,
};

use http::Uri;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, BufReader},
    process::{Child, ChildStdout, Command},
    select,
    sync::{oneshot, watch},
    task::JoinSet,
    time::timeout,
};

use crate::fleet::{FleetError, LAST_WORDS, lock};

/// What is run.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) path: OsString,
    pub(crate) args: Vec<OsString>,
}

/// Starts processes, and has those that run.
#[derive(Debug)]
pub(crate) struct Starter {
    program: Program,
    environment: Vec<(OsString, OsString)>,
    start_limit: Duration,
    end_limit: Duration,
    running: Arc<Mutex<Running>>,
    /// One for each process, which is killed when this is dropped.
    keepers: Mutex<JoinSet<()>>,
    resident: Mutex<Option<Process>>,
    ending: watch::Sender<bool>,
}

/// Process ids by the order in which they were started.
#[derive(Debug, Default)]
struct Running {
    started: u64,
    ids: BTreeMap<u64, u32>,
}

/// A process that serves. Dropping it tells the process to end.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) id: u32,
    pub(crate) address: SocketAddr,
    /// Of its endpoint.
    pub(crate) path: String,
    kill: oneshot::Sender<()>,
    ended: oneshot::Receiver<()>,
}

/// A process that has not yet said where it serves. Dropping it kills the process.
pub(crate) struct Launched {
    child: Child,
    id: u32,
    stdout: BufReader<ChildStdout>,
    stderr: Arc<Mutex<Tail>>,
    pipes: JoinSet<()>,
    listed: Option<Listed>,
}

impl Starter {
    pub(crate) fn new(
        program: Program,
        environment: Vec<(OsString, OsString)>,
        start_limit: Duration,
        end_limit: Duration,
    ) -> Self {
        Self {
            program,
            environment,
            start_limit,
            end_limit,
            running: Arc::default(),
            keepers: Mutex::default(),
            resident: Mutex::default(),
            ending: watch::Sender::new(false),
        }
    }

    /// Starts an instance.
    pub(crate) async fn start(&self) -> Result<Process, FleetError> {
        self.ready(self.launch_instance()?).await
    }

    pub(crate) fn launch_instance(&self) -> Result<Launched, FleetError> {
        let mut launched = self.launch(&self.program)?;
        launched.listed = Some(Listed::new(&self.running, launched.id));
        Ok(launched)
    }

    pub(crate) fn launch(&self, program: &Program) -> Result<Launched, FleetError> {
        let failed = |source: io::Error| FleetError::Spawn {
            program: program.path.to_string_lossy().into_owned(),
            source,
        };
        let mut child = Command::new(&program.path)
            .args(&program.args)
            .args(["--port", "0"])
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let (Some(id), Some(stdout), Some(stderr)) =
            (child.id(), child.stdout.take(), child.stderr.take())
        else {
            return Err(failed(io::Error::other("it has no standard output")));
        };
        let tail = Arc::default();
        let mut pipes = JoinSet::new();
        pipes.spawn(pass_on(stderr, id, Arc::clone(&tail)));
        let stdout = BufReader::new(stdout);
        Ok(Launched { child, id, stdout, stderr: tail, pipes, listed: None })
    }

    /// Waits until a process has said where it serves.
    pub(crate) async fn ready(&self, mut launched: Launched) -> Result<Process, FleetError> {
        let found = timeout(self.start_limit, first_url(&mut launched.stdout)).await;
        let limit = self.start_limit;
        let (address, path) = match found {
            Ok(Some(url)) => url,
            Ok(None) => return Err(launched.has_ended().await),
            Err(_) => return Err(FleetError::Silent { limit, stderr: launched.last_lines() }),
        };
        let Launched { child, id, stdout, mut pipes, listed, .. } = launched;
        // Nobody reads the rest, and the process must be able to write it.
        pipes.spawn(for_each_line(stdout, |_| {}));
        let (kill, killed) = oneshot::channel();
        let (has_ended, ended) = oneshot::channel();
        let end = End { killed, ending: self.ending(), limit: self.end_limit };
        let mut keepers = lock(&self.keepers);
        while keepers.try_join_next().is_some() {}
        keepers.spawn(async move {
            keep(child, end, pipes).await;
            drop((listed, has_ended));
        });
        Ok(Process { id, address, path, kill, ended })
    }

    /// Waits until the resident process serves, and keeps it.
    pub(crate) async fn keep_resident(&self, launched: Launched) -> Result<(), FleetError> {
        let process = self.ready(launched).await?;
        *lock(&self.resident) = Some(process);
        Ok(())
    }

    /// The instances that run, the oldest first.
    pub(crate) fn running(&self) -> Vec<u32> {
        lock(&self.running).ids.values().copied().collect()
    }

    /// Tells when the fleet ends.
    pub(crate) fn ending(&self) -> Ending {
        Ending(self.ending.subscribe())
    }

    /// Tells all processes to end, and waits until they have.
    pub(crate) async fn end(&self) {
        self.ending.send_replace(true);
        let mut keepers = std::mem::take(&mut *lock(&self.keepers));
        while keepers.join_next().await.is_some() {}
    }
}

impl Process {
    /// Kills the process, and waits until it is gone.
    pub(crate) async fn kill(self) {
        // An error means that it is gone already.
        let _ = self.kill.send(());
        let _ = self.ended.await;
    }
}

impl Launched {
    /// Why there was no URL up to the end of the output.
    async fn has_ended(mut self) -> FleetError {
        let status = timeout(LAST_WORDS, self.child.wait()).await;
        let status = status.ok().and_then(Result::ok);
        if status.is_some() {
            let _ = timeout(LAST_WORDS, self.pipes.join_next()).await;
        }
        FleetError::Ended { status, stderr: self.last_lines() }
    }

    fn last_lines(&self) -> String {
        let tail = lock(&self.stderr);
        tail.0.iter().map(|line| format!("{line}\n")).collect()
    }
}

/// A process among those that run.
struct Listed {
    running: Arc<Mutex<Running>>,
    number: u64,
}

impl Listed {
    fn new(running: &Arc<Mutex<Running>>, id: u32) -> Self {
        let mut list = lock(running);
        let number = list.started;
        list.started += 1;
        list.ids.insert(number, id);
        Self { running: Arc::clone(running), number }
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        lock(&self.running).ids.remove(&self.number);
    }
}

/// How the end of a process comes about, unless it ends by itself.
struct End {
    /// An error means that its [`Process`] was dropped.
    killed: oneshot::Receiver<()>,
    ending: Ending,
    limit: Duration,
}

/// The end of the fleet.
pub(crate) struct Ending(watch::Receiver<bool>);

impl Ending {
    /// Waits for it.
    pub(crate) async fn comes(&mut self) {
        // An error means that nothing of the fleet is left.
        let _ = self.0.wait_for(|ending| *ending).await;
    }
}

/// Why a process ends.
#[derive(PartialEq, Eq)]
enum Why {
    Asked,
    Itself,
    Killed,
}

/// Is there until the process has ended.
async fn keep(mut child: Child, mut end: End, pipes: JoinSet<()>) {
    let id = child.id().unwrap_or_default();
    let why = select! {
        _ = child.wait() => Why::Itself,
        killed = end.killed => if killed.is_ok() { Why::Killed } else { Why::Asked },
        () = end.ending.comes() => Why::Asked,
    };
    if why == Why::Asked {
        terminate(&mut child);
        if timeout(end.limit, child.wait()).await.is_err() {
            eprintln!("process {id} was killed: it did not end within {:?}", end.limit);
        }
    }
    // An error means that it has ended.
    let _ = child.kill().await;
    // A process that it started itself may still have them.
    let _ = timeout(LAST_WORDS, pipes.join_all()).await;
}

/// Tells a process to end.
#[cfg(unix)]
fn terminate(child: &mut Child) {
    use rustix::process::{Pid, Signal, kill_process};
    // There is an id as long as nobody waited for the end, so it is not another process's by now.
    let id = child.id().and_then(|id| i32::try_from(id).ok());
    if let Some(id) = id.and_then(Pid::from_raw) {
        // An error means that it has ended.
        let _ = kill_process(id, Signal::TERM);
    }
}

/// Ends a process; the system has no way to ask for it.
#[cfg(not(unix))]
fn terminate(child: &mut Child) {
    let _ = child.start_kill();
}

/// The last lines of an output.
#[derive(Debug, Default)]
struct Tail(VecDeque<String>);

/// Puts what a process writes to standard error on that of this process too.
async fn pass_on(pipe: impl AsyncRead + Unpin, id: u32, tail: Arc<Mutex<Tail>>) {
    for_each_line(BufReader::new(pipe), |line| {
        eprintln!("process {id}: {line}");
        let mut tail = lock(&tail);
        tail.0.push_back(line.to_owned());
        if tail.0.len() > TAIL {
            tail.0.pop_front();
        }
    })
    .await;
}

/// Reads to the end. An output that cannot be read is at its end.
async fn for_each_line(mut pipe: BufReader<impl AsyncRead + Unpin>, mut each: impl FnMut(&str)) {
    while let Some(line) = next_line(&mut pipe).await {
        each(&line);
    }
}

async fn next_line(pipe: &mut BufReader<impl AsyncRead + Unpin>) -> Option<String> {
    let mut line = Vec::new();
    match pipe.read_until(b'\n', &mut line).await {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(String::from_utf8_lossy(&line).trim_end().to_owned()),
    }
}

async fn first_url(stdout: &mut BufReader<ChildStdout>) -> Option<(SocketAddr, String)> {
    loop {
        if let Some(url) = url_in(&next_line(stdout).await?) {
            return Some(url);
        }
    }
}

/// The address and path of the first URL of a line that has an address.
fn url_in(line: &str) -> Option<(SocketAddr, String)> {
    line.match_indices("http://").find_map(|(start, _)| {
        let ends = |c: char| c.is_whitespace() || "\"'<>`;,)".contains(c);
        let url = line[start..].split(ends).next()?.trim_end_matches('.');
        let url: Uri = url.parse().ok()?;
        let address = url.authority()?.as_str().parse().ok()?;
        Some((address, url.path().to_owned()))
    })
}

/// How many lines of standard error an error has.
const TAIL: usize = 50;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_url_with_an_address_counts() {
        let url = |line| url_in(line).map(|(address, path)| format!("{address} {path}"));
        for line in [
            "http://127.0.0.1:80/mcp",
            "served at http://127.0.0.1:80/mcp; only here",
            "see http://example.com/ (http://127.0.0.1:80/mcp).",
            "\"http://127.0.0.1:80/mcp\", http://127.0.0.1:81/other",
        ] {
            assert_eq!(url(line).as_deref(), Some("127.0.0.1:80 /mcp"), "{line}");
        }
        assert_eq!(url("http://[::1]:80").as_deref(), Some("[::1]:80 /"));
        for line in ["", "http://", "http://127.0.0.1/mcp", "https://127.0.0.1:80/mcp"] {
            assert_eq!(url(line), None, "{line}");
        }
    }
}
