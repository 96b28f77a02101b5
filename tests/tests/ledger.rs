//! The ledger (`requirements.toml`) has no holes and no dangling names.
//!
//! The requirements are not part of this repository. They are looked for in
//! `$MCP_SPEC_DIR/requirements.md`, by default `../shared/spec` beside the workspace; where there
//! are none, only the ledger itself is checked.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use mcp_edge_tests::spec_folder;
use serde::Deserialize;

/// How a requirement is met, by area and id.
type Ledger = BTreeMap<String, BTreeMap<String, Entry>>;

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Entry {
    Proven(Vec<String>),
    Said(Said),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    #[serde(default)]
    tests: Vec<String>,
    why: Option<String>,
    pending: Option<String>,
}

impl Entry {
    fn tests(&self) -> &[String] {
        match self {
            Self::Proven(tests) | Self::Said(Said { tests, .. }) => tests,
        }
    }

    fn sentences(&self) -> impl Iterator<Item = &String> {
        let said = match self {
            Self::Proven(_) => None,
            Self::Said(said) => Some(said),
        };
        said.into_iter().flat_map(|said| said.why.iter().chain(&said.pending))
    }

    const fn is_pending(&self) -> bool {
        matches!(self, Self::Said(Said { pending: Some(_), .. }))
    }
}

#[test]
fn every_duty_is_in_the_ledger() {
    let Some(duties) = duties() else {
        eprintln!("SKIPPED: no requirements.md; set MCP_SPEC_DIR to its folder");
        return;
    };
    let ledger = ledger();
    let listed: BTreeSet<&str> =
        ledger.values().flat_map(|area| area.keys()).map(|id| &id[..]).collect();
    let holes: Vec<_> = duties
        .iter()
        .filter(|(id, binding)| **binding && !listed.contains(id.as_str()))
        .map(|(id, _)| id)
        .collect();
    assert!(holes.is_empty(), "not in the ledger: {holes:?}");
    let unknown: Vec<_> = listed.iter().filter(|id| !duties.contains_key(**id)).collect();
    assert!(unknown.is_empty(), "not in requirements.md: {unknown:?}");
    report(&ledger, &duties);
}

#[test]
fn every_entry_proves_or_explains() {
    for (area, entries) in ledger() {
        for (id, entry) in entries {
            assert!(id.starts_with(&format!("{area}-")), "{id} is under [{area}]");
            let tests: BTreeSet<_> = entry.tests().iter().collect();
            assert_eq!(tests.len(), entry.tests().len(), "{id} names a test twice");
            assert!(!tests.is_empty() || entry.sentences().next().is_some(), "{id} is empty");
            for text in entry.sentences() {
                let ends = text.ends_with('.') && !text.contains(". ");
                assert!(ends && text.len() > 15, "{id}: not one sentence: {text}");
            }
        }
    }
}

#[test]
fn every_test_that_the_ledger_names_exists() {
    let tests = tests();
    assert!(
        tests.len() > 300,
        "only {} tests found: can this still read the sources?",
        tests.len()
    );
    let mut dangling = Vec::new();
    for (id, entry) in ledger().into_values().flatten() {
        for name in entry.tests() {
            let own = format!("mcp-edge-tests::{name}");
            if !tests.contains(name) && !tests.contains(&own) {
                dangling.push(format!("{id}: {name}"));
            }
        }
    }
    assert!(dangling.is_empty(), "no such tests:\n{}", dangling.join("\n"));
}

#[test]
fn tests_are_found_as_nextest_names_them() {
    let tests = tests();
    for name in [
        "mcp-edge-tests::ledger::tests_are_found_as_nextest_names_them",
        "mcp-edge-tests::core::tool_calls",
        "mcp-edge-tests::hyper::tool_calls",
        "mcp-edge-tests::journal::rules::limits_are_settings",
        "mcp-edge::uri::tests::uris_follow_rfc_3986",
        "mcp-edge::feed::tests::in_process_feed::a_dropped_listener_is_forgotten",
        "mcp-edge-hyper::http::body::a_body_in_pieces_is_joined",
        "everything::fixtures::content::a_text",
    ] {
        assert!(tests.contains(name), "{name}");
    }
    assert!(!tests.iter().any(|name| name.contains('$')));
}

// The ledger and the requirements.

fn ledger() -> Ledger {
    let text = fs::read_to_string(package().join("requirements.toml")).unwrap();
    toml::from_str(&text).unwrap_or_else(|error| panic!("requirements.toml: {error}"))
}

/// Every id of the requirements, and whether it binds (MUST, SHOULD, WIRE).
fn duties() -> Option<BTreeMap<String, bool>> {
    let text = fs::read_to_string(spec_folder().join("requirements.md")).ok()?;
    let items = text.lines().filter_map(|line| line.strip_prefix("- **")?.split_once("**"));
    let duties: BTreeMap<_, _> = items
        .filter(|(id, _)| id.split_once('-').is_some_and(|(_, n)| n.parse::<u8>().is_ok()))
        .filter(|(_, rest)| rest.starts_with(" ["))
        .map(|(id, rest)| {
            let binds = ["[MUST", "[SHOULD", "[WIRE]"].iter().any(|level| rest.contains(level));
            (id.to_owned(), binds)
        })
        .collect();
    assert!(duties.len() > 400, "only {} items found in requirements.md", duties.len());
    Some(duties)
}

/// Prints how many duties of each area are proven, explained and pending.
fn report(ledger: &Ledger, duties: &BTreeMap<String, bool>) {
    eprintln!("{:8} {:>6} {:>8} {:>9} {:>7}", "area", "duties", "proven", "explained", "pending");
    let mut sum = [0; 4];
    for (area, entries) in ledger {
        let binding = || entries.iter().filter(|(id, _)| duties[id.as_str()]);
        let pending = binding().filter(|(_, entry)| entry.is_pending()).count();
        let proven = |entry: &Entry| !entry.is_pending() && !entry.tests().is_empty();
        let proven = binding().filter(|(_, entry)| proven(entry)).count();
        let all = binding().count();
        let row = [all, proven, all - proven - pending, pending];
        eprintln!("{area:8} {:>6} {:>8} {:>9} {:>7}", row[0], row[1], row[2], row[3]);
        sum.iter_mut().zip(row).for_each(|(sum, count)| *sum += count);
    }
    eprintln!("{:8} {:>6} {:>8} {:>9} {:>7}", "all", sum[0], sum[1], sum[2], sum[3]);
}

// The tests of the workspace, read from its sources: running `cargo nextest list` builds everything.

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The names of all tests, as `package::binary::path::test`; unit tests have no binary.
fn tests() -> BTreeSet<String> {
    let root = package().parent().unwrap();
    let contract = contract(&fs::read_to_string(package().join("src/lib.rs")).unwrap());
    let mut found = BTreeSet::new();
    for folder in ["crates", "adapters", "examples"] {
        for entry in fs::read_dir(root.join(folder)).unwrap() {
            tests_of_package(&entry.unwrap().path(), &contract, &mut found);
        }
    }
    tests_of_package(package(), &contract, &mut found);
    found
}

fn tests_of_package(folder: &Path, contract: &[String], found: &mut BTreeSet<String>) {
    let Ok(manifest) = fs::read_to_string(folder.join("Cargo.toml")) else { return };
    let name = manifest.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    let package = name.unwrap().to_owned();
    read_folder(&folder.join("src"), &package, contract, found);
    // Each file and each folder in `tests` is a binary of its own.
    read_folder(&folder.join("tests"), &package, contract, found);
}

fn read_folder(folder: &Path, path: &str, contract: &[String], found: &mut BTreeSet<String>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let entry = entry.unwrap().path();
        let stem = entry.file_stem().unwrap().to_str().unwrap();
        let own = match stem {
            "lib" | "main" | "mod" => path.to_owned(),
            stem => format!("{path}::{stem}"),
        };
        if entry.is_dir() {
            read_folder(&entry, &own, contract, found);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            read_source(&fs::read_to_string(&entry).unwrap(), &own, contract, found);
        }
    }
}

/// Finds the tests of one file. `rustfmt` sees to it that attributes stand on lines of their own, and
/// that a module ends with a brace as far to the right as it began.
fn read_source(source: &str, path: &str, contract: &[String], found: &mut BTreeSet<String>) {
    let mut modules: Vec<(usize, &str)> = Vec::new();
    let mut is_test = false;
    for line in source.lines() {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        if text == "}" && modules.last().is_some_and(|(begun, _)| *begun == indent) {
            modules.pop();
        }
        let at = |name: &str| {
            let inner = modules.iter().map(|(_, module)| *module);
            [path].into_iter().chain(inner).chain([name]).collect::<Vec<_>>().join("::")
        };
        let item = text.trim_start_matches("pub ").trim_start_matches("pub(crate) ");
        let item = item.trim_start_matches("async ");
        if text.starts_with("#[test]") || text.starts_with("#[tokio::test") {
            is_test = true;
        } else if let Some(rest) = item.strip_prefix("fn ") {
            if std::mem::take(&mut is_test) {
                found.extend(
                    rest.split(['(', '<']).next().filter(|name| !name.starts_with('$')).map(at),
                );
            }
        } else if let Some(name) = item.strip_prefix("mod ").and_then(|it| it.strip_suffix(" {")) {
            modules.push((indent, name));
        } else if text.starts_with("mcp_edge_tests::contract_suite!") {
            found.extend(contract.iter().map(|name| at(name)));
        }
    }
}

/// The functions of the contract, from the macro that makes tests of them.
fn contract(source: &str) -> Vec<String> {
    let list = source.split_once("@tests $client:\n").unwrap().1.split_once('}').unwrap().0;
    list.split_whitespace().map(|path| path.split_once("::").unwrap().1.to_owned()).collect()
}
