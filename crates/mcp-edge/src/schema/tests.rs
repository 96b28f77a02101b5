//! What schemas mean, by the official test suite, by another implementation, and by hand.

mod differential;
mod suite;

use serde_json::{Value, json};

use super::Schema;

#[track_caller]
fn faults(schema: &Value, value: &Value) -> Vec<String> {
    let faults = Schema::compile(schema).unwrap().validate(value).err().unwrap_or_default();
    faults.iter().map(ToString::to_string).collect()
}

#[track_caller]
fn refusal(schema: &Value) -> String {
    Schema::compile(schema).unwrap_err()
}

fn is_good(schema: &str, value: &str) -> bool {
    let schema = serde_json::from_str(schema).unwrap();
    Schema::compile(&schema).unwrap().validate_json(value).is_ok()
}

#[test]
fn all_faults_are_told_at_once_each_with_place_expectation_and_finding() {
    let schema = json!({
        "type": "object",
        "properties": { "items": { "type": "array", "items": { "$ref": "#/$defs/line" } } },
        "$defs": { "line": {
            "type": "object",
            "properties": {
                "count": { "type": "integer", "minimum": 1 },
                "tag": { "enum": ["a", "b"] },
            },
            "required": ["count"],
            "additionalProperties": false,
        } },
    });
    let value = json!({ "items": [
        { "count": "two" }, { "count": 0, "tag": "c" }, {}, { "count": 1, "cuont": 2 },
    ] });
    assert_eq!(
        faults(&schema, &value),
        [
            "/items/0/count: expected an integer of at least 1, found \"two\"",
            "/items/1/count: expected an integer of at least 1, found 0",
            "/items/1/tag: expected one of \"a\", \"b\", found \"c\"",
            "/items/2/count: expected an integer of at least 1, which is required, found nothing",
            "/items/3/cuont: expected no member of this name (known are count, tag), found 2",
        ]
    );
    assert_eq!(faults(&schema, &json!(5)), ["expected an object, found 5"]);
}

#[test]
fn faults_are_bounded_in_number_and_length() {
    let many = json!(vec!["x".repeat(100); 100]);
    let told = faults(&json!({ "items": { "type": "integer" } }), &many);
    assert_eq!(told.len(), 16);
    assert_eq!(told[15], format!("/15: expected an integer, found \"{}…", "x".repeat(58)));
    let name = "é~/\n".repeat(200);
    let told = faults(&json!({ "additionalProperties": false }), &json!({ name.clone(): 1 }));
    assert!(told[0].starts_with("/é~0~1 é~0~1 ") && told[0].len() < 500, "{}", told[0]);
}

#[test]
fn alternatives_are_told_by_the_closest() {
    let kinds = json!({ "anyOf": [
        { "type": "string" }, { "type": "null" }, { "type": "integer", "minimum": 3 },
    ] });
    assert_eq!(
        faults(&kinds, &json!(true)),
        ["expected a string or null or an integer of at least 3, found true"]
    );
    assert_eq!(faults(&kinds, &json!(1)), ["expected an integer of at least 3, found 1"]);

    let names = json!({ "oneOf": [{ "const": "x" }, { "const": "y" }] });
    assert_eq!(faults(&names, &json!("z")), ["expected \"x\" or \"y\", found \"z\""]);

    let shapes = json!({ "oneOf": [
        {
            "type": "object",
            "properties": { "kind": { "const": "circle" }, "r": { "type": "number" } },
            "required": ["kind", "r"],
        },
        {
            "type": "object",
            "properties": { "kind": { "const": "box" }, "w": { "type": "number" } },
            "required": ["kind", "w"],
        },
    ] });
    assert_eq!(
        faults(&shapes, &json!({ "kind": "box", "w": "x" })),
        ["/w: expected a number (closest of 2 alternatives), found \"x\""]
    );
    assert_eq!(
        faults(&shapes, &json!({ "kind": "oval" })),
        ["/kind: expected \"circle\" or \"box\", found \"oval\""]
    );
    assert_eq!(faults(&shapes, &json!([])), ["expected an object, found []"]);

    let optional = json!({ "anyOf": [shapes["oneOf"][0], { "type": "null" }] });
    assert_eq!(
        faults(&optional, &json!({ "kind": "circle", "r": [] })),
        ["/r: expected a number, found []"]
    );
    let both = json!({ "oneOf": [{ "minimum": 1 }, { "minimum": 2 }] });
    assert_eq!(
        faults(&both, &json!(3)),
        ["expected a match for one of 2 alternatives, not both 1 and 2, found 3"]
    );
}

#[test]
fn every_keyword_has_its_words() {
    for (schema, value, told) in [
        (json!(false), json!(1), "expected nothing here, found 1"),
        (
            json!({ "not": { "const": 9 } }),
            json!(9),
            "expected what does not match {\"const\":9}, found 9",
        ),
        (
            json!({ "multipleOf": 0.01 }),
            json!(0.015),
            "expected a value divisible by 0.01, found 0.015",
        ),
        (
            json!({ "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1 }),
            json!(1),
            "expected a number above 0 and below 1, found 1",
        ),
        (
            json!({ "type": ["string", "null"], "pattern": "^a", "minLength": 1, "maxLength": 2 }),
            json!("b"),
            "expected a string or null of at least 1 character and of at most 2 characters and \
             matching `^a`, found \"b\"",
        ),
        (
            json!({ "uniqueItems": true }),
            json!([1, 1.0]),
            "expected a value without equal items, found [1,1.0]",
        ),
        (
            json!({ "contains": { "type": "string" }, "minContains": 2 }),
            json!([1, "a"]),
            "expected at least 2 items to be a string, found 1",
        ),
        (
            json!({ "contains": { "type": "string" }, "maxContains": 1 }),
            json!(["a", "b"]),
            "expected at most 1 item to be a string, found 2",
        ),
        (
            json!({ "prefixItems": [true], "items": false }),
            json!([1, 2]),
            "/1: expected nothing here, found 2",
        ),
        (
            json!({ "propertyNames": { "maxLength": 3 } }),
            json!({ "abcd": 1 }),
            "expected names of members to be a value of at most 3 characters, found \"abcd\"",
        ),
        (
            json!({ "dependentRequired": { "a": ["b"] } }),
            json!({ "a": 1 }),
            "/b: expected a value beside `a`, found nothing",
        ),
        (
            json!({ "allOf": [{ "properties": { "a": true } }], "unevaluatedProperties": false }),
            json!({ "a": 1, "b": 2 }),
            "/b: expected no member of this name, found 2",
        ),
    ] {
        assert_eq!(faults(&schema, &value), [told]);
    }
    assert_eq!(
        Schema::compile(&json!(true)).unwrap().validate_json("{").unwrap_err()[0].expected,
        "JSON"
    );
}

#[test]
fn numbers_are_exact() {
    for (schema, good, bad) in [
        (r#"{ "type": "integer" }"#, "1.0", "1.5"),
        (r#"{ "type": "integer" }"#, "1e300", "1e-3"),
        (
            r#"{ "type": "integer" }"#,
            "98249283749234923498293171823948729348710298301928331",
            "0.1",
        ),
        (r#"{ "multipleOf": 0.01 }"#, "19.99", "19.995"),
        (r#"{ "multipleOf": 0.01 }"#, "-1e300", "1e-300"),
        (r#"{ "multipleOf": 0.123456789 }"#, "0.0", "1e308"),
        (r#"{ "multipleOf": 3 }"#, "3e300", "1e300"),
        (r#"{ "multipleOf": 7 }"#, "9223372036854775807", "9223372036854775806"),
        (r#"{ "multipleOf": 20 }"#, "1e2", "110"),
        (r#"{ "maximum": 9007199254740992 }"#, "9007199254740992.0", "9007199254740993"),
        (r#"{ "minimum": -2.5 }"#, "-2.50", "-2.51"),
        (r#"{ "exclusiveMinimum": 0 }"#, "1e-300", "-0.0"),
        (
            r#"{ "exclusiveMaximum": 18446744073709551615 }"#,
            "18446744073709551614",
            "18446744073709551615",
        ),
        (r#"{ "const": 1 }"#, "10e-1", "true"),
        (
            r#"{ "enum": [[{ "a": 1, "b": [2.0] }]] }"#,
            r#"[{ "b": [2], "a": 1.0 }]"#,
            r#"[{ "a": 1 }]"#,
        ),
        (r#"{ "maxLength": 2.0 }"#, r#""😀é""#, r#""abc""#),
        (r#"{ "minItems": 1e30 }"#, "1", "[1]"),
    ] {
        assert!(is_good(schema, good), "{schema} and {good}");
        assert!(!is_good(schema, bad), "{schema} and {bad}");
    }
}

#[test]
fn formats_and_unknown_keywords_are_annotations() {
    let schema = json!({
        "format": "email", "contentEncoding": "base64", "contentSchema": false, "default": 1,
        "examples": [1], "x-mcp-header": 5, "dependencies": { "a": ["b"] }, "$recursiveRef": 3,
    });
    assert_eq!(faults(&schema, &json!("no address")), [""; 0]);
    assert_eq!(faults(&schema, &json!({ "a": 1 })), [""; 0]);
}

#[test]
fn what_is_not_supported_is_refused_with_place_keyword_and_remedy() {
    for (schema, part, told) in [
        (json!({ "$schema": "http://json-schema.org/draft-07/schema#" }), "#", "`$schema`: only "),
        (json!({ "$vocabulary": {} }), "#", "`$vocabulary`: meta-schemas are not supported"),
        (json!({ "$ref": "https://example.com/a" }), "#", "`$ref`: `https://example.com/a` leaves"),
        (json!({ "$dynamicRef": "b#c" }), "#", "`$dynamicRef`: `b#c` leaves the document"),
        (json!({ "$ref": "#/$defs/a" }), "#", "`$ref`: `#/$defs/a` names nothing"),
        (json!({ "$ref": "#a" }), "#", "`$ref`: `#a` names nothing in the document"),
        (json!({ "$ref": "#%F" }), "#", "`$ref`: `#%F` names nothing in the document"),
        (json!({ "pattern": "(?=a)" }), "#", "`pattern`: the pattern `(?=a)` is not supported"),
        (json!({ "pattern": r"\p{L}" }), "#", r"`pattern`: the pattern `\p{L}` is not supported"),
        (json!({ "patternProperties": { "[": 1 } }), "#/patternProperties/[", "a schema is an"),
        (json!({ "patternProperties": { "[": {} } }), "#", "`patternProperties`: the pattern `[`"),
        (json!({ "items": [{}] }), "#", "`items`: name a list of schemas `prefixItems`"),
        (json!({ "type": "strin" }), "#", "`type`: write the name of a type, or a list of names"),
        (json!({ "type": [] }), "#", "`type`: write"),
        (json!({ "minLength": -1 }), "#", "`minLength`: write a non-negative integer, not -1"),
        (json!({ "minLength": 0.5 }), "#", "`minLength`: write a non-negative integer"),
        (json!({ "multipleOf": 0 }), "#", "`multipleOf`: write a number above zero"),
        (json!({ "maximum": "1" }), "#", "`maximum`: write a number, not \"1\""),
        (json!({ "required": "a" }), "#", "`required`: write a list of different names"),
        (json!({ "required": ["a", "a"] }), "#", "`required`: write a list of different names"),
        (json!({ "dependentRequired": { "a": "b" } }), "#", "`dependentRequired`: write"),
        (json!({ "allOf": [] }), "#", "`allOf`: write a list of one or more schemas"),
        (json!({ "properties": [] }), "#", "`properties`: write an object of schemas"),
        (json!({ "title": 1 }), "#", "`title`: write a string"),
        (json!({ "$id": "#a" }), "#", "`$id`: no fragment is allowed"),
        (json!({ "$anchor": "1" }), "#", "`$anchor`: write ASCII letters"),
        (
            json!({ "$defs": { "a": { "$id": "b" }, "c": { "$id": "b" } } }),
            "#/$defs/c",
            "`$id`: another",
        ),
        (
            json!({ "$defs": { "a": { "$anchor": "b" }, "c": { "$anchor": "b" } } }),
            "#/$defs/c",
            "`$anchor`: another schema has the same one",
        ),
        (
            json!({ "properties": { "a/b~": { "not": 1 } } }),
            "#/properties/a~1b~0/not",
            "a schema is",
        ),
        (json!({ "$defs": { "a": { "if": {}, "then": 1 } } }), "#/$defs/a/then", "a schema is"),
    ] {
        let fault = refusal(&schema);
        let place = format!("schema at `{part}`");
        assert!(fault.starts_with(&place) && fault.contains(told), "{schema}: {fault}");
    }
}

#[test]
fn references_reach_what_no_keyword_names() {
    let schema = json!({
        "properties": { "a": { "$ref": "#/definitions/x~1%7Ey~0" } },
        "definitions": { "x/~y~": { "items": { "$ref": "#/definitions/z" } }, "z": { "type": "null" } },
    });
    assert_eq!(faults(&schema, &json!({ "a": [null, 1] })), ["/a/1: expected null, found 1"]);
}

#[test]
fn a_reference_is_resolved_where_it_stands() {
    let schema = json!({
        "$ref": "urn:a:b#/x-own/first",
        "$defs": { "b": {
            "$id": "urn:a:b",
            "x-own": { "first": { "$ref": "#/x-own/second" }, "second": { "type": "null" } },
        } },
        "x-own": { "second": {} },
    });
    assert_eq!(faults(&schema, &json!(1)), ["expected null, found 1"]);
}

#[test]
fn a_dynamic_anchor_counts_by_its_name() {
    let schema = json!({
        "$id": "urn:a", "$ref": "urn:b", "$defs": {
            "other": { "$dynamicAnchor": "other", "type": "string" },
            "b": {
                "$id": "urn:b", "items": { "$dynamicRef": "#one" },
                "$defs": { "one": { "$dynamicAnchor": "one", "type": "null" } },
            },
        },
    });
    assert_eq!(faults(&schema, &json!([null, "a"])), ["/1: expected null, found \"a\""]);
}

#[test]
fn a_schema_that_never_ends_is_refused() {
    for schema in [
        json!({ "$ref": "#" }),
        json!({ "allOf": [{ "$ref": "#/$defs/a" }], "$defs": { "a": { "anyOf": [{ "$ref": "#" }] } } }),
        json!({ "if": { "not": { "$ref": "#" } } }),
        json!({ "dependentSchemas": { "a": { "$ref": "#" } } }),
    ] {
        assert!(refusal(&schema).contains("refers to itself"), "{schema}");
    }
    // A value has an end.
    assert_eq!(faults(&json!({ "items": { "$ref": "#" } }), &json!([[[]]])), [""; 0]);
    // Only a walk can tell.
    let schema = json!({
        "$id": "urn:a", "$dynamicAnchor": "x", "$ref": "urn:b",
        "$defs": { "b": {
            "$id": "urn:b", "$dynamicRef": "#x",
            "$defs": { "x": { "$dynamicAnchor": "x" } },
        } },
    });
    assert_eq!(faults(&schema, &json!(1)), [TOO_COMPLEX]);
}

#[test]
fn schemas_are_bounded() {
    let deep = (0..128).fold(json!({}), |inner, _| json!({ "not": inner }));
    assert!(refusal(&deep).contains("levels deep"));
    let wide = json!({ "allOf": vec![json!(true); 10_000] });
    assert!(refusal(&wide).contains("subschemas"));
    let mut chain = serde_json::Map::new();
    for index in 0..200 {
        chain.insert(index.to_string(), json!({ "$ref": format!("#/$defs/{}", index + 1) }));
    }
    chain.insert("200".to_owned(), json!({}));
    let chain = json!({ "$ref": "#/$defs/0", "$defs": chain });
    assert!(refusal(&chain).contains("through more than 128 others"));
}

#[test]
fn work_is_bounded() {
    // As deep as JSON is read, through four nodes a level.
    let tree = json!({ "allOf": [{ "items": { "anyOf": [{ "$ref": "#" }] } }] });
    let nested = |depth| (0..depth).fold(json!([]), |inner, _| json!([inner]));
    assert_eq!(faults(&tree, &nested(127)), [""; 0]);
    // Every level has two alternatives: two to the power of the depth.
    let one = json!({ "items": { "$ref": "#" }, "not": { "maxItems": 0 } });
    let exploding = json!({ "anyOf": [one, one] });
    assert!(faults(&exploding, &nested(100)).contains(&TOO_COMPLEX.to_owned()));
    assert_eq!(faults(&json!({ "items": { "$ref": "#" } }), &nested(600)), [TOO_COMPLEX]);
    // A verdict that is turned around is no better.
    assert_eq!(faults(&json!({ "not": exploding }), &nested(100)), [TOO_COMPLEX]);
    // Large is not complex.
    let large: Vec<_> = (0..200_000).map(|index| json!({ "id": index })).collect();
    let schema =
        json!({ "uniqueItems": true, "items": { "properties": { "id": { "minimum": 0 } } } });
    assert_eq!(faults(&schema, &json!(large)), [""; 0]);
}

const TOO_COMPLEX: &str = "expected a smaller value, found one that is too complex to check";
