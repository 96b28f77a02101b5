//! The processes that requests go to.

use std::{net::SocketAddr, sync::Mutex};

use tokio::{net::TcpStream, sync::mpsc};

use crate::fleet::{FleetError, Routing, lock, process::Process, routing::Turns};

/// A process that nobody uses yet, or why there is none.
pub(crate) type Spare = Result<Process, FleetError>;

/// The processes that requests go to.
pub(crate) enum Pool {
    /// All stay.
    Kept { instances: Mutex<Vec<Option<Process>>>, turns: Turns },
    /// Each is for one request.
    Spare(tokio::sync::Mutex<mpsc::Receiver<Spare>>),
}

/// A connection for one request.
pub(crate) struct Connected {
    pub(crate) stream: TcpStream,
    pub(crate) process_id: u32,
    /// The process, if it serves this request alone.
    pub(crate) process: Option<Process>,
}

impl Pool {
    /// `spares` is the way to `taken`, and has room for all processes.
    pub(crate) fn new(
        routing: Routing,
        processes: Vec<Process>,
        spares: &mpsc::Sender<Spare>,
        taken: mpsc::Receiver<Spare>,
    ) -> Self {
        if routing != Routing::Fresh {
            let instances = processes.into_iter().map(Some).collect();
            return Self::Kept { instances: Mutex::new(instances), turns: Turns::new(routing) };
        }
        for process in processes {
            // An error would mean that there is no room; then the process ends.
            let _ = spares.try_send(Ok(process));
        }
        Self::Spare(tokio::sync::Mutex::new(taken))
    }

    /// Puts another process, or none, in the place of one.
    pub(crate) fn replace(
        &self,
        index: usize,
        process: Option<Process>,
    ) -> Result<Option<Process>, FleetError> {
        let Self::Kept { instances, .. } = self else {
            return Err(FleetError::NoInstance { index });
        };
        let mut instances = lock(instances);
        let place = instances.get_mut(index).ok_or(FleetError::NoInstance { index })?;
        Ok(std::mem::replace(place, process))
    }

    /// Connects to the process whose turn it is, or to the next that can be reached.
    ///
    /// Connections are not kept for later requests: one that its instance has left may look sound,
    /// and a request that was sent on it cannot be sent again.
    pub(crate) async fn connect(&self) -> Result<Connected, String> {
        match self {
            Self::Kept { instances, turns } => {
                let candidates = in_turn(&lock(instances), turns);
                for (process_id, address) in candidates {
                    if let Ok(stream) = TcpStream::connect(address).await {
                        return Ok(Connected { stream, process_id, process: None });
                    }
                }
                Err("no instance can be reached".to_owned())
            }
            Self::Spare(spares) => {
                let mut fault = String::new();
                for _ in 0..SPARES_TRIED {
                    let Some(spare) = spares.lock().await.recv().await else { break };
                    let process = spare.map_err(|error| error.to_string())?;
                    match TcpStream::connect(process.address).await {
                        Ok(stream) => {
                            let process_id = process.id;
                            return Ok(Connected { stream, process_id, process: Some(process) });
                        }
                        Err(error) => fault = format!(": {error}"),
                    }
                }
                Err(format!("no process can be reached{fault}"))
            }
        }
    }
}

/// Ids and addresses of the instances that run, the one whose turn it is first.
fn in_turn(instances: &[Option<Process>], turns: &Turns) -> Vec<(u32, SocketAddr)> {
    let order = turns.next(instances.len());
    let process = |index: usize| instances.get(index)?.as_ref();
    order.filter_map(process).map(|process| (process.id, process.address)).collect()
}

/// How many processes may die before their only request until that is refused.
const SPARES_TRIED: usize = 3;
