//! The required tests of the official JSON Schema test suite.
//!
//! Its files are not part of this repository. They are looked for in `$JSON_SCHEMA_SUITE_DIR`, in
//! `$MCP_SPEC_DIR/../json-schema-test-suite`, and beside the workspace in
//! `../shared/json-schema-test-suite`.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};

use super::Schema;

/// Why a group of tests is an exception: its schema does not compile.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reason {
    /// It refers to another document, and nothing is fetched (SCHEMA-06). With a copy of the
    /// document in `$defs` the tests pass.
    Remote,
    /// It refers to the meta-schema, which is another document as well.
    MetaSchema,
    /// It has `\p{…}`, whose tables are larger than all the rest.
    UnicodeClass,
    /// Its `$schema` is not draft 2020-12 (SCHEMA-05).
    Dialect,
}

impl Reason {
    /// What the error then says.
    const fn fault(self) -> &'static str {
        match self {
            Self::Remote | Self::MetaSchema => "leaves the document",
            Self::UnicodeClass => r"it has `\p`",
            Self::Dialect => "`$schema`",
        }
    }
}

/// Groups and the reasons. The list is strict both ways.
const EXCEPTIONS: &[(&str, Reason)] = &[
    ("defs: validate definition against metaschema", Reason::MetaSchema),
    ("dynamicRef: strict-tree schema, guards against misspelled properties", Reason::Remote),
    ("dynamicRef: tests for implementation dynamic anchor and reference link", Reason::Remote),
    ("dynamicRef: $ref and $dynamicAnchor are independent of order - $defs first", Reason::Remote),
    ("dynamicRef: $ref and $dynamicAnchor are independent of order - $ref first", Reason::Remote),
    ("dynamicRef: $ref to $dynamicRef finds detached $dynamicAnchor", Reason::Remote),
    ("pattern: pattern with Unicode property escape requires unicode mode", Reason::UnicodeClass),
    ("patternProperties: patternProperties with Unicode property escape", Reason::UnicodeClass),
    ("ref: remote ref, containing refs itself", Reason::MetaSchema),
    ("refRemote: remote ref", Reason::Remote),
    ("refRemote: fragment within remote ref", Reason::Remote),
    ("refRemote: anchor within remote ref", Reason::Remote),
    ("refRemote: ref within remote ref", Reason::Remote),
    ("refRemote: base URI change", Reason::Remote),
    ("refRemote: base URI change - change folder", Reason::Remote),
    ("refRemote: base URI change - change folder in subschema", Reason::Remote),
    ("refRemote: root ref in remote ref", Reason::Remote),
    ("refRemote: remote ref with ref to defs", Reason::Remote),
    ("refRemote: Location-independent identifier in remote ref", Reason::Remote),
    ("refRemote: retrieved nested refs resolve relative to their URI not $id", Reason::Remote),
    ("refRemote: remote HTTP ref with different $id", Reason::Remote),
    ("refRemote: remote HTTP ref with different URN $id", Reason::Remote),
    ("refRemote: remote HTTP ref with nested absolute ref", Reason::Remote),
    ("refRemote: $ref to $ref finds detached $anchor", Reason::Remote),
    (
        "vocabulary: schema that uses custom metaschema with with no validation vocabulary",
        Reason::Dialect,
    ),
    ("vocabulary: ignore unrecognized optional vocabulary", Reason::Dialect),
];

#[test]
fn the_official_suite_passes_but_for_named_exceptions() {
    let Some(suite) = suite() else { return };
    let (mut passed, mut excepted, mut wrong) = (0, 0, Vec::new());
    let mut exceptions: BTreeMap<_, _> = EXCEPTIONS.iter().copied().collect();
    for (name, group) in groups(&suite) {
        let tests = group["tests"].as_array().unwrap();
        match (Schema::compile(&group["schema"]), exceptions.remove(name.as_str())) {
            (Ok(schema), None) => {
                passed += tests.len();
                wrong.extend(disagreements(&name, &schema, tests));
            }
            (Err(fault), Some(reason)) => {
                excepted += tests.len();
                if !fault.contains(reason.fault()) {
                    wrong.push(format!("{name}: {fault}"));
                }
            }
            (Ok(_), Some(reason)) => wrong.push(format!("{name}: no exception: {reason:?}")),
            (Err(fault), None) => wrong.push(format!("{name}: {fault}")),
        }
    }
    wrong.extend(exceptions.keys().map(|name| format!("{name}: not in the suite")));
    eprintln!("passed {}, excepted {excepted}", passed - wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(passed > 1_000, "the suite is not complete");
}

#[test]
fn what_needs_other_documents_passes_with_copies_of_them() {
    let Some(suite) = suite() else { return };
    let copies = copies(&suite.join("remotes/draft2020-12"));
    let mut wrong = Vec::new();
    for (name, mut group) in groups(&suite) {
        if EXCEPTIONS.iter().all(|exception| *exception != (name.as_str(), Reason::Remote)) {
            continue;
        }
        let definitions = group["schema"]
            .as_object_mut()
            .unwrap()
            .entry("$defs")
            .or_insert_with(|| Value::Object(Map::new()));
        definitions["copies"] = json!({ "$id": "http://localhost:1234/", "$defs": copies });
        match Schema::compile(&group["schema"]) {
            Ok(schema) => {
                wrong.extend(disagreements(&name, &schema, group["tests"].as_array().unwrap()));
            }
            Err(fault) => wrong.push(format!("{name}: {fault}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The documents that the suite serves on a port, each with an `$id` that says where.
fn copies(folder: &Path) -> Map<String, Value> {
    let mut copies = Map::new();
    for path in json_files(folder, true) {
        let url = format!(
            "http://localhost:1234/draft2020-12/{}",
            path.strip_prefix(folder).unwrap().display()
        );
        let mut document = read(&path);
        if document.get("$vocabulary").is_some() {
            continue;
        }
        let id = document.as_object_mut().unwrap().entry("$id").or_insert_with(|| json!(url));
        if *id != url {
            let id = id.as_str().unwrap().to_owned();
            copies.insert(url.clone(), json!({ "$id": url, "$ref": id }));
        }
        copies.insert(format!("copy of {url}"), document);
    }
    copies
}

fn disagreements(name: &str, schema: &Schema, tests: &[Value]) -> Vec<String> {
    let wrong = tests.iter().filter_map(|test| {
        let verdict = schema.validate(&test["data"]);
        let text = test["data"].to_string();
        assert_eq!(verdict, schema.validate_json(&text), "{name}");
        (verdict.is_ok() != test["valid"].as_bool().unwrap())
            .then(|| format!("{name}: {}: {verdict:?}", test["description"]))
    });
    wrong.collect()
}

/// Each group of each file, named by both.
fn groups(suite: &Path) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for path in json_files(&suite.join("tests/draft2020-12"), false) {
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let Value::Array(groups) = read(&path) else { panic!("{} is no list", path.display()) };
        all.extend(
            groups.into_iter().map(|group| {
                (format!("{stem}: {}", group["description"].as_str().unwrap()), group)
            }),
        );
    }
    all
}

fn json_files(folder: &Path, in_folders: bool) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && in_folders {
            files.extend(json_files(&path, true));
        } else if path.extension().is_some_and(|kind| kind == "json") {
            files.push(path);
        }
    }
    files.sort();
    files
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn suite() -> Option<PathBuf> {
    let beside =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/json-schema-test-suite");
    let folder = match (std::env::var_os("JSON_SCHEMA_SUITE_DIR"), std::env::var_os("MCP_SPEC_DIR"))
    {
        (Some(folder), _) => PathBuf::from(folder),
        (None, Some(spec)) => PathBuf::from(spec).join("../json-schema-test-suite"),
        (None, None) => beside,
    };
    if !folder.is_dir() {
        eprintln!("SKIPPED: no JSON Schema test suite; set JSON_SCHEMA_SUITE_DIR to its folder");
        return None;
    }
    Some(folder)
}
