//! The official data of the specification: its examples, and its schema.
//!
//! The files are not part of this repository. They are looked for in `$MCP_SPEC_DIR`, by default
//! `../shared/spec` beside the workspace; without them nothing is checked, and each test says so.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "these are tests")]

mod examples;
mod questions;
mod recorded;
mod schema;

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The folder of the specification.
fn spec() -> Option<PathBuf> {
    let folder = mcp_edge_tests::spec_folder();
    let found = folder.join("examples").is_dir();
    if !found {
        eprintln!("SKIPPED: no specification; set MCP_SPEC_DIR to its folder");
    }
    found.then_some(folder)
}

/// What is in a folder, sorted.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!entries.is_empty(), "{} is empty", folder.display());
    entries.sort();
    entries
}

/// The last part of a path.
fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

fn read(path: &Path) -> serde_json::Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}
