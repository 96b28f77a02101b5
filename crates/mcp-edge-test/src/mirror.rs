//! `Mcp-Param-*`: arguments that travel in headers as well (PARAM-01 to PARAM-18).

use http::HeaderName;
use serde_json::Value;

/// The headers that mirror `arguments`, by the input schema of their tool.
pub(crate) fn headers(schema: &Value, arguments: &Value) -> Vec<(HeaderName, String)> {
    let mut headers = Vec::new();
    visit(schema, arguments, &mut |name, argument| {
        if let (Some(name), Some(text)) = (name.and_then(header_name), text(argument)) {
            headers.push((name, text));
        }
    });
    headers
}

/// Says what is wrong with the annotations of an input schema; clients drop such a tool (PARAM-08).
pub(crate) fn check(schema: &Value) -> Result<(), String> {
    let mut seen = Vec::new();
    let mut fault = None;
    let mut sound = 0;
    visit_schemas(schema, &mut |property| {
        let Some(annotation) = property.get(ANNOTATION) else { return };
        sound += 1;
        let name = annotation.as_str().and_then(header_name);
        let kind = property["type"].as_str().unwrap_or_default();
        let text = match name {
            None => format!("{ANNOTATION} {annotation} is not a name for a header (PARAM-02)"),
            Some(name) if seen.contains(&name) => {
                format!("{ANNOTATION} {annotation} is there twice (PARAM-04)")
            }
            Some(_) if !matches!(kind, "string" | "integer" | "boolean") => {
                format!("{ANNOTATION} {annotation} is on a property of type {kind:?} (PARAM-05)")
            }
            Some(name) => return seen.push(name),
        };
        fault.get_or_insert(text);
    });
    if fault.is_none() && count(schema) > sound {
        fault = Some(format!("{ANNOTATION} is not on a plain property (PARAM-07)"));
    }
    fault.map_or(Ok(()), Err)
}

/// Visits each annotated property with its argument, null where there is none.
fn visit(schema: &Value, arguments: &Value, found: &mut impl FnMut(Option<&str>, &Value)) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let argument = arguments.get(name).unwrap_or(&Value::Null);
        if let Some(annotation) = property.get(ANNOTATION) {
            found(annotation.as_str(), argument);
        }
        visit(property, argument, found);
    }
}

/// Visits the properties that are reached through `properties` alone.
fn visit_schemas(schema: &Value, found: &mut impl FnMut(&Value)) {
    for property in schema["properties"].as_object().into_iter().flatten().map(|(_, p)| p) {
        found(property);
        visit_schemas(property, found);
    }
}

/// How often the annotation occurs at all, outside of plain data.
fn count(schema: &Value) -> usize {
    match schema {
        Value::Array(schemas) => schemas.iter().map(count).sum(),
        Value::Object(members) => members
            .iter()
            .map(|(keyword, value)| match keyword.as_str() {
                ANNOTATION => 1,
                "const" | "default" | "enum" | "examples" => 0,
                // Here the keys are names; a property may be called like a keyword.
                "properties" | "$defs" | "definitions" | "patternProperties" => {
                    value.as_object().into_iter().flatten().map(|(_, schema)| count(schema)).sum()
                }
                _ => count(value),
            })
            .sum(),
        _ => 0,
    }
}

fn header_name(name: &str) -> Option<HeaderName> {
    // `HeaderName` takes exactly the tokens of RFC 9110.
    HeaderName::from_bytes(format!("mcp-param-{name}").as_bytes()).ok().filter(|_| !name.is_empty())
}

/// The text of a value that can be mirrored (PARAM-15).
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) => Some(value.to_string()),
        Value::Number(number) if number.is_f64() => number
            .as_f64()
            .filter(|number| number.fract() == 0.0)
            .map(|number| format!("{number:.0}")),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

const ANNOTATION: &str = "x-mcp-header";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "options": {"type": "object", "properties": {
                "dry": {"type": "boolean", "x-mcp-header": "Dry-Run"},
                "level": {"type": "integer", "x-mcp-header": "Level"},
            }},
        }})
    }

    fn pairs(arguments: &Value) -> Vec<(String, String)> {
        headers(&schema(), arguments)
            .into_iter()
            .map(|(name, value)| (name.to_string(), value))
            .collect()
    }

    #[test]
    fn present_arguments_are_mirrored_at_any_depth() {
        let arguments = json!({"region": "eu", "options": {"dry": true, "level": 42.0}});
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = [
            pair("mcp-param-region", "eu"),
            pair("mcp-param-dry-run", "true"),
            pair("mcp-param-level", "42"),
        ];
        assert_eq!(pairs(&arguments), expected);
    }

    #[test]
    fn absent_null_and_structured_arguments_are_not() {
        for arguments in [
            json!(null),
            json!({}),
            json!({"region": null, "options": 1}),
            json!({"region": ["eu"], "options": {"dry": {}, "level": 0.5}}),
        ] {
            assert_eq!(pairs(&arguments), []);
        }
    }

    #[test]
    fn bad_annotations_are_found() {
        assert_eq!(check(&schema()), Ok(()));
        let property = |property: Value| json!({"properties": {"x-mcp-header": property}});
        assert_eq!(check(&property(json!({"type": "string"}))), Ok(()));
        for (bad, item) in [
            (property(json!({"type": "string", "x-mcp-header": ""})), "PARAM-02"),
            (property(json!({"type": "string", "x-mcp-header": "a b"})), "PARAM-02"),
            (property(json!({"type": "string", "x-mcp-header": 1})), "PARAM-02"),
            (property(json!({"type": "number", "x-mcp-header": "A"})), "PARAM-05"),
            (json!({"x-mcp-header": "A"}), "PARAM-07"),
            (
                json!({"anyOf": [property(json!({"type": "string", "x-mcp-header": "A"}))]}),
                "PARAM-07",
            ),
            (
                json!({"properties": {
                    "a": {"type": "string", "x-mcp-header": "A"},
                    "b": {"type": "string", "x-mcp-header": "a"},
                }}),
                "PARAM-04",
            ),
        ] {
            let fault = check(&bad).unwrap_err();
            assert!(fault.contains(item), "{bad}: {fault}");
        }
    }
}
