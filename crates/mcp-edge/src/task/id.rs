//! Task ids: the key of a record, sealed for its owner, so that ids of others and invented ones are
//! known for what they are before any store is asked (TASK-12, TASK-25).

use crate::{
    call::Call,
    canonical, encode,
    error::RequestError,
    platform::{Platform, Timestamp},
    principal::Principal,
    rejection::Rejection,
    server::Server,
    token::{Binding, open, seal},
};

/// Longest task id, in bytes.
const LONGEST: usize = 512;

/// Of the record that a call goes on in: the same for all retries of one state.
pub(crate) fn key_of(call: &Call, run_id: &[u8; 16]) -> String {
    let parts: [&[u8]; 3] = [b"mcp-edge task 1", call.server.audience().as_bytes(), run_id];
    encode(&canonical::digest(&parts)[..16])
}

/// Whose a record is, for the bound on open tasks.
pub(crate) fn owner(server: &Server, principal: &Principal) -> String {
    encode(&binding(principal).context(server.audience()))
}

/// What a task id stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// A record, by its key.
    Record(String),
    /// A job elsewhere.
    Job(JobId),
}

/// A job elsewhere: all that there is to know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JobId {
    /// Stands for the name of the tool.
    pub(crate) tool: [u8; 8],
    pub(crate) created_at: Timestamp,
    pub(crate) ttl_ms: u64,
    /// What the job is called where it runs.
    pub(crate) handle: String,
}

/// The first byte of what stands for a job; a key begins with a letter, a digit, `-` or `_`.
const JOB: u8 = 1;

impl Named {
    fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Record(key) => key.as_bytes().to_vec(),
            Self::Job(job) => {
                let mut out = vec![JOB];
                out.extend_from_slice(&job.tool);
                out.extend_from_slice(&job.created_at.as_millis().to_be_bytes());
                out.extend_from_slice(&job.ttl_ms.to_be_bytes());
                out.extend_from_slice(job.handle.as_bytes());
                out
            }
        }
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let Some((&JOB, rest)) = bytes.split_first() else {
            return String::from_utf8(bytes.to_vec()).ok().map(Self::Record);
        };
        let (tool, rest) = rest.split_first_chunk()?;
        let (created_at, rest) = rest.split_first_chunk()?;
        let (ttl_ms, handle) = rest.split_first_chunk()?;
        Some(Self::Job(JobId {
            tool: *tool,
            created_at: Timestamp::from_millis(u64::from_be_bytes(*created_at)),
            ttl_ms: u64::from_be_bytes(*ttl_ms),
            handle: String::from_utf8(handle.to_vec()).ok()?,
        }))
    }
}

/// Seals an id for its owner.
///
/// # Errors
/// When there is no key to seal with.
pub(crate) async fn seal_id(
    named: &Named,
    server: &Server,
    platform: &dyn Platform,
    owner: &Principal,
) -> Result<String, Rejection> {
    seal(server, platform, binding(owner), &named.to_bytes()).await
}

/// Opens a task id.
///
/// # Errors
/// [`unknown`], whatever is wrong with it.
pub(crate) async fn open_id(
    id: &str,
    server: &Server,
    caller: &Principal,
) -> Result<Named, Rejection> {
    let refuse = |reason: &str| {
        tracing::debug!("a task id was refused: {reason}");
        unknown()
    };
    if id.len() > LONGEST {
        return Err(refuse("it is longer than any that was given out"));
    }
    let named = open(server, id, binding(caller)).await.map_err(|reason| refuse(&reason))?;
    Named::from_bytes(&named).ok_or_else(|| refuse("it names nothing"))
}

/// The one answer to ids that are unknown, foreign, expired or altered (TASK-25).
pub(crate) fn unknown() -> Rejection {
    Rejection::Failed(RequestError::invalid_params("Unknown task"))
}

fn binding(owner: &Principal) -> Binding<'_> {
    Binding { purpose: "task", principal: owner, method: "", name: b"", arguments: [0; 32] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_id_names_comes_back() {
        let job = JobId {
            tool: [200; 8],
            created_at: Timestamp::from_millis(1),
            ttl_ms: u64::MAX,
            handle: "jöb/7".to_owned(),
        };
        for named in [Named::Record("AAECAwQFBgcICQoLDA0ODw".to_owned()), Named::Job(job)] {
            assert_eq!(Named::from_bytes(&named.to_bytes()), Some(named));
        }
        assert_eq!(Named::from_bytes(&[JOB, 2, 3]), None);
    }
}
