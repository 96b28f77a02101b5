//! A log for deployments.

use std::io::{self, Write as _};

use mcp_edge::{JsonLog, Platform as _};

use crate::platform::HyperPlatform;

/// A `tracing` subscriber that writes each event of level `lowest` and above to standard error, as
/// one line of JSON with the time of the system.
///
/// ```
/// let log = mcp_edge_hyper::json_log(tracing::Level::INFO);
/// tracing::subscriber::set_global_default(log).expect("no other log is set");
/// ```
#[must_use]
pub fn json_log(lowest: tracing::Level) -> JsonLog {
    let platform = HyperPlatform::new();
    JsonLog::new(
        lowest,
        move || platform.now(),
        |line| {
            // A log that cannot be written has nobody to tell.
            let _ = writeln!(io::stderr(), "{line}");
        },
    )
}
