use super::*;
use crate::error::code;

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

fn read(body: &str) -> Envelope<'_> {
    Envelope::read(body.as_bytes(), 64).unwrap()
}

fn refusal(body: &str) -> (i64, Option<&str>) {
    let (rejection, id) = Envelope::read(body.as_bytes(), 64).unwrap_err();
    (rejection.wire().1, id)
}

#[test]
fn base_05_the_id_is_kept_as_it_was_written() {
    for id in [r#""a\u0041""#, "7", "-1", "12345678901234567890", r#""""#] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m","params":{{{META}}}}}"#);
        assert_eq!(read(&body).id, Some(id));
    }
}

#[test]
fn base_04_ids_of_other_types_are_refused_without_an_id() {
    for id in ["null", "1.0", "1.5", "1e3", "true", "[]", "{}", r#""\ud800""#] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#);
        assert_eq!(refusal(&body), (code::INVALID_REQUEST, None), "{id}");
    }
}

#[test]
fn base_02_anything_but_one_message_is_refused() {
    for (body, id) in [
        (r#"[{"jsonrpc":"2.0","id":1,"method":"m"}]"#, None),
        (r#"["2.0","m",1,{}]"#, None),
        ("[]", None),
        ("7", None),
        ("\"x\"", None),
        ("null", None),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, Some("1")),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}"#, Some("1")),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","result":{}}"#, Some("1")),
        (r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#, Some("1")),
        (r#"{"id":1,"method":"m"}"#, Some("1")),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, Some("1")),
        (r#"{"jsonrpc":"2.0","id":1}"#, Some("1")),
    ] {
        assert_eq!(refusal(body), (code::INVALID_REQUEST, id), "{body}");
    }
}

#[test]
fn what_is_not_json_in_utf_8_is_a_parse_error() {
    for body in
        ["", " ", "{", "{}x", r#"{"a":1,}"#, r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}"#]
    {
        assert_eq!(refusal(body), (code::PARSE_ERROR, None), "{body}");
    }
    let (rejection, _) = Envelope::read(b"\"\xff\"", 64).unwrap_err();
    assert_eq!(rejection.wire().1, code::PARSE_ERROR);
}

#[test]
fn duplicate_members_are_refused_at_every_level_of_the_envelope() {
    for params in [
        r#"{"name":"a","name":"b"}"#,
        r#"{"_meta":{},"_meta":{}}"#,
        r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"a","io.modelcontextprotocol/protocolVersion":"b"}}"#,
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{params}}}"#);
        assert_eq!(refusal(&body).0, code::PARSE_ERROR, "{params}");
    }
}

#[test]
fn repeated_members_that_nobody_knows_are_tolerated_on_either_path() {
    for more in [r#""x":1,"x":2"#, r#""x":1,"x":2,"\u0079":3"#, r#""x":1,"\u0078":2"#] {
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{{META},{more}}},{more}}}"#);
        assert_eq!(read(&body).id, Some("1"), "{more}");
    }
}

#[test]
fn meta_04_a_required_key_of_the_wrong_type_is_named() {
    for (params, key) in [
        ("[]", "_meta"),
        (r#"{"_meta":7}"#, "_meta"),
        (
            r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":7}}"#,
            r#"_meta["io.modelcontextprotocol/protocolVersion"]"#,
        ),
        (
            r#"{"_meta":{"io.modelcontextprotocol/clientCapabilities":[]}}"#,
            r#"_meta["io.modelcontextprotocol/clientCapabilities"]"#,
        ),
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{params}}}"#);
        assert_eq!(read(&body).params.fault, Some(Fault::Meta(key)), "{params}");
    }
}

#[test]
fn a_33_optional_keys_and_capabilities_of_the_wrong_type_are_ignored() {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{
        "io.modelcontextprotocol/protocolVersion":"2026-07-28",
        "io.modelcontextprotocol/clientInfo":7,
        "io.modelcontextprotocol/clientCapabilities":
            {"sampling":true,"roots":[],"elicitation":{"url":{},"form":7},"extensions":3}}}}"#;
    let params = read(body).params;
    assert_eq!(params.fault, None);
    let capabilities = params.meta.unwrap().capabilities.unwrap();
    assert!(capabilities.sampling.is_none() && capabilities.roots.is_none());
    let elicitation = capabilities.elicitation.unwrap();
    assert!(elicitation.url.is_some() && elicitation.form.is_none());
    assert!(capabilities.extensions.is_none());
}

#[test]
fn base_14_unknown_members_are_tolerated() {
    let body = format!(
        r#"{{"jsonrpc":"2.0","x":[1],"id":1,"method":"m","params":{{"y":null,{META},"z":{{}}}}}}"#
    );
    let envelope = read(&body);
    assert_eq!((envelope.method.as_ref(), envelope.params.fault), ("m", None));
}

#[test]
fn params_of_the_wrong_type_are_named() {
    for name in ["name", "uri", "cursor", "requestState"] {
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"{name}":7,{META}}}}}"#);
        let fault = read(&body).params.fault;
        assert_eq!(fault, Some(Fault::Member { name, expected: "a string" }));
    }
}

#[test]
fn an_explicit_null_is_not_an_absent_member() {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"inputResponses":null,{META}}}}}"#
    );
    assert_eq!(read(&body).params.input_responses, Some("null"));
}

#[test]
fn escapes_in_names_are_resolved() {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools\/call","params":{{"name":"caf\u00e9",{META}}}}}"#
    );
    let envelope = read(&body);
    assert_eq!(envelope.method, "tools/call");
    assert_eq!(envelope.params.name, Some("café".into()));
}

#[test]
fn http_17_nesting_is_bounded_exactly() {
    let body = |depth: usize| {
        let nested = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{{META},"x":{nested}}}}}"#)
    };
    assert!(Envelope::read(body(8).as_bytes(), 10).is_ok());
    let deep = body(9);
    let (rejection, id) = Envelope::read(deep.as_bytes(), 10).unwrap_err();
    assert_eq!((rejection.wire().1, id), (code::PARSE_ERROR, None));
    assert_eq!(rejection.message(), "Parse error: the body is nested more than 10 deep");
    assert!(Envelope::read(body(100).as_bytes(), 127).is_ok(), "by the slow path");
    assert!(Envelope::read("[".repeat(1 << 20).as_bytes(), 64).is_err());
}
