//! Tool arguments that are mirrored into `Mcp-Param-*` headers (PARAM-01..20).
//!
//! A property of a tool's input schema with an `x-mcp-header` annotation travels twice: in the body
//! for the tool, in a header for whoever routes the request. Both must say the same, since one
//! decides where the request goes and the other what it does. Only the body reaches the tool
//! (PARAM-19).

use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};

use crate::{canonical::Decimal, headers::mirrored_value};

/// A property that is mirrored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ParamHeader {
    /// `mcp-param-` and the name of the annotation.
    pub(crate) header: HeaderName,
    /// The property names from the root of the arguments.
    pub(crate) path: Vec<String>,
}

/// Finds the mirrored properties of an input schema.
///
/// Clients drop a tool as a whole when one of its annotations is wrong (PARAM-08), so none is let
/// through: not with a bad or repeated name, not on a property of another type, and not anywhere
/// that is not reached through `properties` alone.
///
/// # Errors
/// Names the place of the annotation, what is wrong with it, and the remedy (PARAM-02..07).
pub(crate) fn from_schema(schema: &Value) -> Result<Vec<ParamHeader>, String> {
    let mut found = Vec::new();
    collect(schema, &Place::Root, &mut found)?;
    Ok(found)
}

/// Reads the arguments of a call. None of them may be there twice: the headers would agree with one,
/// and a tool that reads them by itself may go by the other.
///
/// # Errors
/// What is no JSON, or which member is repeated.
pub(crate) fn read(arguments: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(arguments).map(|Once(value)| value)
}

/// A value in which no member is repeated.
struct Once(Value);

impl<'de> Deserialize<'de> for Once {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OnceVisitor).map(Self)
    }
}

struct OnceVisitor;

impl<'de> Visitor<'de> for OnceVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Once(item)) = seq.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            if members.contains_key(&name) {
                return Err(A::Error::custom(format_args!("duplicate member {name:?}")));
            }
            let Once(value) = map.next_value()?;
            members.insert(name, value);
        }
        Ok(Value::Object(members))
    }
}

/// Compares the headers of a call with its arguments.
///
/// A string, boolean or integer must be mirrored, exactly once and with the same value. Anything
/// else must not be: an absent or null argument (A-17), and one that has no text form (A-38), for
/// which the validation of the input has the better message.
///
/// # Errors
/// The first header that is missing, repeated, unreadable, or disagrees.
pub(crate) fn check<'a>(
    params: &'a [ParamHeader],
    arguments: &Value,
    headers: &HeaderMap,
) -> Result<(), &'a HeaderName> {
    for param in params {
        let argument = param.path.iter().try_fold(arguments, |value, name| {
            value.as_object().and_then(|object| object.get(name))
        });
        let mut values = headers.get_all(&param.header).iter();
        let agrees = match (argument.filter(|value| is_mirrorable(value)), values.next()) {
            (None, None) => true,
            (Some(argument), Some(value)) => values.next().is_none() && mirrors(value, argument),
            (None, Some(_)) | (Some(_), None) => false,
        };
        if !agrees {
            return Err(&param.header);
        }
    }
    Ok(())
}

/// Where in a schema an annotation stands.
enum Place<'a> {
    Root,
    /// A property that is reached through `properties` alone.
    Property {
        name: &'a str,
        parent: &'a Self,
    },
    /// Below the named keyword, where no annotation may stand.
    Below {
        keyword: &'a str,
        parent: &'a Self,
    },
}

impl Place<'_> {
    /// The property names from the root, if only properties lie between.
    fn path(&self) -> Option<Vec<String>> {
        match self {
            Self::Root => Some(Vec::new()),
            Self::Property { name, parent } => {
                let mut path = parent.path()?;
                path.push((*name).to_owned());
                Some(path)
            }
            Self::Below { .. } => None,
        }
    }

    /// The place for a message: `options.dry`, or `tags.[items].name`.
    fn describe(&self) -> String {
        let (parent, last) = match self {
            Self::Root => return String::new(),
            Self::Property { name, parent } => (parent, (*name).to_owned()),
            Self::Below { keyword, parent } => (parent, format!("[{keyword}]")),
        };
        let before = parent.describe();
        if before.is_empty() { last } else { format!("{before}.{last}") }
    }
}

fn collect(schema: &Value, place: &Place<'_>, found: &mut Vec<ParamHeader>) -> Result<(), String> {
    let object = match schema {
        Value::Object(object) => object,
        // `prefixItems`, `oneOf` and their like hold lists of schemas.
        Value::Array(schemas) => {
            return schemas.iter().try_for_each(|schema| collect(schema, place, found));
        }
        _ => return Ok(()),
    };
    if let Some(annotation) = object.get(ANNOTATION) {
        let param = read_annotation(annotation, object.get("type"), place, found)
            .map_err(|fault| format!("`{ANNOTATION}` at `{}` {fault}", place.describe()))?;
        found.push(param);
    }
    for (keyword, value) in object {
        match (keyword.as_str(), value) {
            // Data, not schemas: whatever a default holds annotates nothing.
            ("const" | "default" | "enum" | "examples" | ANNOTATION, _) => {}
            ("properties", Value::Object(properties)) => {
                for (name, schema) in properties {
                    collect(schema, &Place::Property { name, parent: place }, found)?;
                }
            }
            // Here, too, the keys are names and not keywords.
            (
                "$defs" | "definitions" | "dependencies" | "dependentSchemas" | "patternProperties",
                Value::Object(schemas),
            ) => {
                for schema in schemas.values() {
                    collect(schema, &Place::Below { keyword, parent: place }, found)?;
                }
            }
            _ => collect(value, &Place::Below { keyword, parent: place }, found)?,
        }
    }
    Ok(())
}

fn read_annotation(
    annotation: &Value,
    kind: Option<&Value>,
    place: &Place<'_>,
    found: &[ParamHeader],
) -> Result<ParamHeader, String> {
    let path = place.path().filter(|path| !path.is_empty()).ok_or(
        "stands where clients ignore the tool for it: only a property that is reached from the \
         root through `properties` alone can be mirrored; move it there, or remove the annotation",
    )?;
    let name = annotation.as_str().ok_or("is not a string: give the name of the header")?;
    let is_token = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte));
    let header = format!("mcp-param-{name}");
    let header =
        HeaderName::from_bytes(header.as_bytes()).ok().filter(|_| is_token).ok_or_else(|| {
            format!(
                "is {name:?}, which no header name can end in: use ASCII letters, digits and `-`"
            )
        })?;
    match kind.and_then(Value::as_str) {
        Some("string" | "integer" | "boolean") => {}
        Some(other) => {
            return Err(format!(
                "is on a property of type {other:?}: only `string`, `integer` and `boolean` can be \
                 mirrored; change the type, or remove the annotation"
            ));
        }
        None => {
            return Err(
                "is on a property without one plain type: write `\"type\": \"string\"` (or \
                        `integer`, `boolean`) beside it, and leave an optional property out of \
                        `required` instead of allowing null"
                    .to_owned(),
            );
        }
    }
    if let Some(other) = found.iter().find(|other| other.header == header) {
        return Err(format!(
            "repeats the name {name:?} of `{}`, and header names have no case: choose another",
            other.path.join(".")
        ));
    }
    Ok(ParamHeader { header, path })
}

/// Whether a value has a text form (PARAM-15, A-38).
fn is_mirrorable(value: &Value) -> bool {
    match value {
        Value::String(_) | Value::Bool(_) => true,
        Value::Number(number) => {
            Decimal::parse(&number.to_string()).is_some_and(|decimal| decimal.is_integer())
        }
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

fn mirrors(header: &HeaderValue, argument: &Value) -> bool {
    let Ok(text) = mirrored_value(header) else { return false };
    match argument {
        Value::String(argument) => text == argument.as_str(),
        Value::Bool(argument) => text == if *argument { "true" } else { "false" },
        Value::Number(number) => {
            let number = number.to_string();
            text == number.as_str() || is_same_integer(&text, &number)
        }
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

/// Whether two texts are the same integer (PARAM-16). Beyond 2^53 whoever read one of them may have
/// rounded it, so there only equal texts count (PARAM-06).
fn is_same_integer(left: &str, right: &str) -> bool {
    let (Some(left), Some(right)) = (Decimal::parse(left), Decimal::parse(right)) else {
        return false;
    };
    left == right && right.is_safe_integer()
}

const ANNOTATION: &str = "x-mcp-header";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "reads better at the calls")]
    fn params(properties: Value) -> Vec<ParamHeader> {
        from_schema(&json!({"type": "object", "properties": properties})).unwrap()
    }

    fn agrees(argument: &Value, header_values: &[&[u8]]) -> bool {
        let params = params(json!({"p": {"type": "string", "x-mcp-header": "P"}}));
        let mut headers = HeaderMap::new();
        for value in header_values {
            headers.append("mcp-param-p", HeaderValue::from_bytes(value).unwrap());
        }
        match check(&params, argument, &headers) {
            Ok(()) => true,
            Err(header) => {
                assert_eq!(header, "mcp-param-p");
                false
            }
        }
    }

    #[test]
    fn arguments_are_read_as_serde_json_reads_them_but_for_what_is_repeated() {
        for text in [
            "{}",
            r#"{"a":[null,true,-1,18446744073709551615,1.5,1e300,"x\u00e9",{"b":{}}],"c":{"a":1}}"#,
            r#"{"a":123456789012345678901234567890,"b":-0,"c":-0.0}"#,
        ] {
            assert_eq!(read(text).unwrap(), serde_json::from_str::<Value>(text).unwrap());
        }
        for text in [r#"{"a":1,"a":1}"#, r#"{"a":1,"\u0061":1}"#, r#"{"x":[{"a":{"b":1,"b":2}}]}"#]
        {
            assert!(read(text).unwrap_err().to_string().contains("duplicate member"), "{text}");
        }
        assert!(read("{").is_err());
    }

    #[test]
    fn annotated_properties_are_found_at_any_depth() {
        let found = params(json!({
            "region": {"type": "string", "x-mcp-header": "Region"},
            "options": {"type": "object", "properties": {
                "dry": {"type": "boolean", "x-mcp-header": "Dry-Run"},
                "limit": {"type": "integer", "x-mcp-header": "Limit"},
            }},
            "plain": {"type": "number"},
        }));
        let mut found: Vec<_> =
            found.iter().map(|param| (param.header.as_str(), param.path.join("."))).collect();
        found.sort_unstable();
        assert_eq!(
            found,
            [
                ("mcp-param-dry-run", "options.dry".to_owned()),
                ("mcp-param-limit", "options.limit".to_owned()),
                ("mcp-param-region", "region".to_owned()),
            ]
        );
    }

    #[test]
    fn property_names_that_look_like_keywords_are_names() {
        let found = params(json!({
            "items": {"type": "string", "x-mcp-header": "A"},
            "properties": {"type": "object", "properties": {
                "properties": {"type": "string", "x-mcp-header": "B"},
                "x-mcp-header": {"type": "string"},
            }},
            "x-mcp-header": {"type": "string", "x-mcp-header": "C"},
            "default": {"type": "integer", "x-mcp-header": "D"},
            "$defs": {"type": "boolean", "x-mcp-header": "E"},
        }));
        let mut paths: Vec<_> = found.iter().map(|param| param.path.join(".")).collect();
        paths.sort_unstable();
        assert_eq!(paths, ["$defs", "default", "items", "properties.properties", "x-mcp-header"]);
    }

    #[test]
    fn data_in_a_schema_annotates_nothing() {
        let data = json!({"x-mcp-header": "X"});
        let found = params(json!({
            "a": {"default": data, "const": data, "enum": [data], "examples": [data]},
        }));
        assert!(found.is_empty());
        assert!(from_schema(&json!(true)).unwrap().is_empty());
    }

    #[test]
    fn annotations_below_other_keywords_are_refused() {
        let good = json!({"type": "string", "x-mcp-header": "A"});
        let object = json!({"type": "object", "properties": {"p": good}});
        for (keyword, value) in [
            ("items", good.clone()),
            ("items", object.clone()),
            ("prefixItems", json!([good])),
            ("oneOf", json!([{}, object])),
            ("anyOf", json!([object])),
            ("allOf", json!([object])),
            ("not", object.clone()),
            ("if", object.clone()),
            ("then", object.clone()),
            ("else", object.clone()),
            ("$defs", json!({"T": object})),
            ("$defs", json!({"default": good})),
            ("definitions", json!({"properties": good})),
            ("patternProperties", json!({"^x": good})),
            ("dependentSchemas", json!({"a": object})),
            ("additionalProperties", good.clone()),
            ("propertyNames", good.clone()),
            ("contains", good.clone()),
            ("x-unknown", object.clone()),
        ] {
            for schema in [
                json!({"type": "object", (keyword): value}),
                json!({"type": "object", "properties": {"a": {"type": "array", (keyword): value}}}),
            ] {
                let error = from_schema(&schema).unwrap_err();
                assert!(
                    error.contains(&format!("[{keyword}]")) && error.contains("move it"),
                    "{error}"
                );
            }
        }
        let error = from_schema(&json!({"type": "object", "x-mcp-header": "A"})).unwrap_err();
        assert!(error.contains("reached from the root"), "{error}");
    }

    #[test]
    fn bad_names_types_and_repetitions_are_refused_with_the_remedy() {
        for (property, remedy) in [
            (json!({"type": "string", "x-mcp-header": ""}), "use ASCII letters"),
            (json!({"type": "string", "x-mcp-header": "a b"}), "use ASCII letters"),
            (json!({"type": "string", "x-mcp-header": "a:b"}), "use ASCII letters"),
            (json!({"type": "string", "x-mcp-header": "a\r\nb"}), "use ASCII letters"),
            (json!({"type": "string", "x-mcp-header": "é"}), "use ASCII letters"),
            (json!({"type": "string", "x-mcp-header": 1}), "give the name"),
            (json!({"type": "string", "x-mcp-header": null}), "give the name"),
            (json!({"type": "number", "x-mcp-header": "A"}), "change the type"),
            (json!({"type": "object", "x-mcp-header": "A"}), "change the type"),
            (json!({"type": ["string", "null"], "x-mcp-header": "A"}), "out of `required`"),
            (json!({"$ref": "#/$defs/T", "x-mcp-header": "A"}), "write `\"type\""),
        ] {
            let error = from_schema(&json!({"properties": {"o": {"properties": {"p": property}}}}))
                .unwrap_err();
            assert!(
                error.starts_with("`x-mcp-header` at `o.p` ") && error.contains(remedy),
                "{error}"
            );
        }
        let error = from_schema(&json!({"properties": {
            "a": {"type": "string", "x-mcp-header": "Region"},
            "b": {"properties": {"c": {"type": "string", "x-mcp-header": "rEGION"}}},
        }}))
        .unwrap_err();
        assert!(error.contains("at `b.c` repeats") && error.contains("of `a`"), "{error}");
    }

    #[test]
    fn scalars_must_be_mirrored_with_the_same_value() {
        assert!(agrees(&json!({"p": "eu-1"}), &[b"eu-1"]));
        assert!(agrees(&json!({"p": "eu-1"}), &[b"  eu-1\t"]));
        assert!(agrees(&json!({"p": "Zoë"}), &["=?base64?Wm/Dqw==?=".as_bytes()]));
        assert!(agrees(&json!({"p": ""}), &[b""]));
        assert!(agrees(&json!({"p": true}), &[b"true"]));
        assert!(agrees(&json!({"p": false}), &[b"false"]));
        for (argument, header) in [
            (json!("eu-1"), &b"us-2"[..]),
            (json!("eu-1"), b"EU-1"),
            (json!("eu-1"), b""),
            (json!("Zo\u{eb}"), b"Zo\xc3\xab"),
            (json!("a"), b"=?base64?YQ?="),
            (json!(true), b"True"),
            (json!(true), b"1"),
            (json!("42"), b"42.0"),
            (json!(42), b"43"),
            (json!(42), b"forty-two"),
        ] {
            assert!(!agrees(&json!({"p": argument}), &[header]), "{argument}");
        }
    }

    #[test]
    fn a_missing_or_repeated_header_is_refused() {
        assert!(!agrees(&json!({"p": "a"}), &[]));
        assert!(!agrees(&json!({"p": "a"}), &[b"a", b"a"]));
        assert!(!agrees(&json!({"p": 1}), &[]));
    }

    #[test]
    fn what_has_no_text_form_has_no_header() {
        for arguments in [
            json!({}),
            json!({"p": null}),
            json!({"p": []}),
            json!({"p": {"x": 1}}),
            json!({"p": 1.5}),
            json!(null),
            json!([1]),
        ] {
            assert!(agrees(&arguments, &[]), "{arguments}");
            assert!(!agrees(&arguments, &[b"x"]), "{arguments}");
            assert!(!agrees(&arguments, &[b""]), "{arguments}");
        }
    }

    #[test]
    fn integers_compare_by_value() {
        for (argument, header) in [
            ("42", "42"),
            ("42", "42.0"),
            ("42", "4.2e1"),
            ("42", "420E-1"),
            ("42.0", "42"),
            ("-7", "-7.00"),
            ("0", "-0"),
            ("9007199254740991", "9007199254740991.0"),
            ("9007199254740993", "9007199254740993"),
        ] {
            let argument: Value = serde_json::from_str(argument).unwrap();
            assert!(agrees(&json!({"p": argument}), &[header.as_bytes()]), "{argument} {header}");
        }
        for (argument, header) in [
            ("42", "42.5"),
            ("42", "042"),
            ("42", "+42"),
            ("42", "0x2a"),
            ("42", "42,0"),
            ("42", "4 2"),
            ("42", "-42"),
            ("42", "42e"),
            ("42", "1e99999999999999999999"),
            ("9007199254740993", "9007199254740993.0"),
            ("9007199254740993", "9007199254740992"),
            ("18446744073709551615", "1.8446744073709551615e19"),
        ] {
            let argument: Value = serde_json::from_str(argument).unwrap();
            assert!(!agrees(&json!({"p": argument}), &[header.as_bytes()]), "{argument} {header}");
        }
    }

    #[test]
    fn nested_arguments_are_read_at_their_exact_path() {
        let params =
            params(json!({"o": {"properties": {"p": {"type": "string", "x-mcp-header": "P"}}}}));
        let mut headers = HeaderMap::new();
        headers.insert("mcp-param-p", HeaderValue::from_static("a"));
        headers.insert("mcp-param-other", HeaderValue::from_bytes(b"\xff").unwrap());
        assert!(check(&params, &json!({"o": {"p": "a"}}), &headers).is_ok(), "others are ignored");
        assert!(check(&params, &json!({"p": "a"}), &headers).is_err());
        assert!(check(&params, &json!({"o": "a"}), &headers).is_err());
        assert!(check(&params, &json!({"o": [{"p": "a"}]}), &headers).is_err());
        assert!(check(&[], &json!({}), &headers).is_ok());
    }
}
