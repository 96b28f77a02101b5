//! Where the official data of the specification are, which are not part of this repository.

use std::path::{Path, PathBuf};

/// The folder that `$MCP_SPEC_DIR` names, by default `../shared/spec` beside the workspace; whether
/// it is there or not.
pub fn spec_folder() -> PathBuf {
    std::env::var_os("MCP_SPEC_DIR").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/spec"),
        PathBuf::from,
    )
}
