//! The official JSON Schema, patched where it is known to be wrong.

use std::{cell::RefCell, collections::HashMap};

use jsonschema::Validator;
use serde_json::{Value, json};

use super::*;

const FILE: &str = "schema-2026-07-28.json";
const TASKS_FILE: &str = "schema-ext-tasks.json";

/// The definitions of the specification, and of its extension for tasks.
pub(crate) struct Schema {
    whole: Value,
    compiled: RefCell<HashMap<String, Validator>>,
}

impl Schema {
    /// `None` without a specification, which is said.
    pub(crate) fn load() -> Option<Self> {
        let mut whole = read(&spec()?.join(FILE));
        extend(&mut whole, read(&spec()?.join(TASKS_FILE)));
        patch(&mut whole);
        Some(Self { whole, compiled: RefCell::default() })
    }

    pub(crate) fn defines(&self, definition: &str) -> bool {
        self.whole["$defs"].get(definition).is_some()
    }

    /// Validates an instance against one definition.
    pub(crate) fn check(&self, definition: &str, instance: &Value) -> Result<(), String> {
        assert!(self.defines(definition), "there is no definition {definition}");
        let mut compiled = self.compiled.borrow_mut();
        let validator = compiled.entry(definition.to_owned()).or_insert_with(|| {
            let mut schema = self.whole.clone();
            schema["$ref"] = json!(format!("#/$defs/{definition}"));
            jsonschema::draft202012::new(&schema).unwrap()
        });
        let faults: Vec<_> = validator
            .iter_errors(instance)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        if faults.is_empty() { Ok(()) } else { Err(format!("no {definition}: {faults:?}")) }
    }
}

/// Adds the definitions of an extension, which repeats those of the specification that it needs.
fn extend(schema: &mut Value, mut extension: Value) {
    let known = schema["$defs"].as_object_mut().unwrap();
    for (name, definition) in std::mem::take(extension["$defs"].as_object_mut().unwrap()) {
        let known = known.entry(name.clone()).or_insert_with(|| definition.clone());
        assert_eq!(*known, definition, "the extension has a {name} of its own");
    }
}

/// the generated schema says `integer` where the specification says number, and forgets that
/// null is a JSON value. Each place is checked first, so that a corrected schema is noticed.
fn patch(schema: &mut Value) {
    for (place, wrong, right) in [
        (
            "/$defs/JSONValue/anyOf/2/type",
            json!(["string", "integer", "boolean"]),
            json!(["string", "number", "boolean", "null"]),
        ),
        (
            "/$defs/ElicitResult/properties/content/additionalProperties/anyOf/1/type",
            json!(["string", "integer", "boolean"]),
            json!(["string", "number", "boolean"]),
        ),
    ] {
        let found = schema.pointer_mut(place).unwrap();
        assert_eq!(*found, wrong, "{place} is no longer as A-10 says: drop this patch");
        *found = right;
    }
}

#[test]
fn a_10_numbers_and_null_pass_the_patched_schema() {
    let Some(schema) = Schema::load() else { return };
    schema.check("JSONValue", &json!([0.5, null, { "a": 1.5 }])).unwrap();
    let answer = json!({ "action": "accept", "content": { "ratio": 0.5, "tags": ["a"] } });
    schema.check("ElicitResult", &answer).unwrap();
    let wrong = json!({ "action": "accept", "content": { "x": null } });
    assert!(schema.check("ElicitResult", &wrong).is_err());
}
