//! Task ids: the key of a record, sealed for its owner, so that ids of others and invented ones are
//! known for what they are before any store is asked (TASK-12, TASK-25).

use crate::{
    call::Call,
    canonical, encode,
    error::RequestError,
    platform::Platform,
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

/// Seals the key of a record for its owner.
///
/// # Errors
/// When there is no key to seal with.
pub(crate) async fn seal_key(
    key: &str,
    server: &Server,
    platform: &dyn Platform,
    owner: &Principal,
) -> Result<String, Rejection> {
    seal(server, platform, binding(owner), key.as_bytes()).await
}

/// Opens a task id.
///
/// # Errors
/// [`unknown`], whatever is wrong with it.
pub(crate) async fn open_key(
    id: &str,
    server: &Server,
    caller: &Principal,
) -> Result<String, Rejection> {
    let refuse = |reason: &str| {
        tracing::debug!("a task id was refused: {reason}");
        unknown()
    };
    if id.len() > LONGEST {
        return Err(refuse("it is longer than any that was given out"));
    }
    let key = open(server, id, binding(caller)).await.map_err(|reason| refuse(&reason))?;
    String::from_utf8(key).map_err(|_| refuse("it is not the key of a record"))
}

/// The one answer to ids that are unknown, foreign, expired or altered (TASK-25).
pub(crate) fn unknown() -> Rejection {
    Rejection::Failed(RequestError::invalid_params("Unknown task"))
}

fn binding(owner: &Principal) -> Binding<'_> {
    Binding { purpose: "task", principal: owner, method: "", name: b"", arguments: [0; 32] }
}
