//! The schema of a form: what a user's type becomes when a client shows it to a person.
//!
//! Forms are flat and know few kinds of member (ELIC-03, ELIC-04), far fewer than JSON Schema. What
//! a form cannot show is an error when the server is built, and what it cannot *say* about a member
//! that it can show (a pattern, an integer width) is left out: the answer is read as the user's
//! type anyway.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value, json};

/// Makes the form schema of a type.
///
/// # Errors
/// See [`form_schema`].
pub(crate) fn form_schema_of<T: JsonSchema>() -> Result<Value, String> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    form_schema(settings.into_generator().into_root_schema_for::<T>().as_value())
}

/// Turns the schema of a struct into the restricted schema of a form.
///
/// # Errors
/// Names the field that a form cannot show, and what to write instead.
pub(crate) fn form_schema(schema: &Value) -> Result<Value, String> {
    let form = Form { root: schema };
    let root = form.node(schema).ok_or_else(|| NOT_A_STRUCT.to_owned())?.schema;
    let combined = ["oneOf", "anyOf", "allOf", "patternProperties"];
    let is_struct = root.get("type").is_some_and(|kind| kind == "object")
        && !combined.iter().any(|keyword| root.contains_key(*keyword))
        // A map, or a struct with a flattened map: members that nobody can name.
        && root.get("additionalProperties").is_none_or(|more| more == &Value::Bool(false));
    if !is_struct {
        return Err(NOT_A_STRUCT.to_owned());
    }
    let mut properties = Map::new();
    let mut optional = Vec::new();
    for (name, schema) in root.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let node = form.node(schema).ok_or_else(|| fault(name, "takes any value", PICK_A_KIND))?;
        if node.nullable {
            optional.push(name.as_str());
        }
        properties.insert(name.clone(), form.member(name, &node.schema)?);
    }
    let required: Vec<_> = root
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter(|name| !name.as_str().is_some_and(|name| optional.contains(&name)))
        .cloned()
        .collect();
    let mut out = Map::new();
    out.insert("type".to_owned(), "object".into());
    out.insert("properties".to_owned(), properties.into());
    if !required.is_empty() {
        out.insert("required".to_owned(), required.into());
    }
    Ok(out.into())
}

struct Form<'a> {
    root: &'a Value,
}

/// A schema with its references followed and its null taken out.
struct Node {
    schema: Map<String, Value>,
    nullable: bool,
}

impl Form<'_> {
    /// Follows references and peels `Option` off. None when the schema says nothing, as `true`
    /// does.
    fn node(&self, schema: &Value) -> Option<Node> {
        let mut node = Node { schema: schema.as_object()?.clone(), nullable: false };
        // Each turn peels one layer; no type that a form can show has as many.
        for _ in 0..MAX_LAYERS {
            let inner = if let Some(reference) = node.schema.remove("$ref") {
                self.root.pointer(reference.as_str()?.strip_prefix('#')?)?.as_object()?.clone()
            } else if let Some(inner) = take_nullable_choice(&mut node.schema) {
                node.nullable = true;
                inner
            } else {
                break;
            };
            // What stands beside the layer speaks of the field and goes before what the type says.
            let outer = std::mem::replace(&mut node.schema, inner);
            node.schema.extend(outer);
        }
        if let Some(Value::Array(kinds)) = node.schema.get_mut("type") {
            let before = kinds.len();
            kinds.retain(|kind| kind != "null");
            node.nullable |= kinds.len() < before;
            if let [kind] = kinds.as_slice() {
                let kind = kind.clone();
                node.schema.insert("type".to_owned(), kind);
            }
        }
        if let Some(Value::Array(options)) = node.schema.get_mut("enum") {
            options.retain(|option| !option.is_null());
        }
        Some(node)
    }

    fn member(&self, name: &str, schema: &Map<String, Value>) -> Result<Value, String> {
        let is_secret = schema.get("writeOnly").is_some_and(|secret| secret == &Value::Bool(true))
            || schema.get("format").is_some_and(|format| format == "password");
        if is_secret {
            let remedy = "send the person to a page of yours with a URL elicitation";
            return Err(fault(name, "is a secret, which no form may ask for (ELIC-05)", remedy));
        }
        let mut out = Map::new();
        copy(schema, &mut out, &["title", "description"]);
        if let Some(options) = Options::read(schema) {
            let options = options.ok_or_else(|| fault(name, "is an enum with data", UNIT_ENUM))?;
            out.insert("type".to_owned(), "string".into());
            options.write("oneOf", &mut out);
            copy_default(name, schema, &mut out, |default| options.contains(default))?;
            return Ok(out.into());
        }
        let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default();
        out.insert("type".to_owned(), kind.into());
        match kind {
            "string" => {
                copy(schema, &mut out, &["minLength", "maxLength"]);
                let format = schema.get("format").and_then(Value::as_str);
                if matches!(format, Some("email" | "uri" | "date" | "date-time")) {
                    copy(schema, &mut out, &["format"]);
                }
                copy_default(name, schema, &mut out, Value::is_string)?;
            }
            "number" => {
                copy(schema, &mut out, &["minimum", "maximum"]);
                copy_default(name, schema, &mut out, Value::is_number)?;
            }
            "integer" => {
                copy(schema, &mut out, &["minimum", "maximum"]);
                copy_default(name, schema, &mut out, |value| value.is_i64() || value.is_u64())?;
            }
            "boolean" => copy_default(name, schema, &mut out, Value::is_boolean)?,
            "array" => {
                let items = schema.get("items").and_then(|items| self.node(items));
                let options = items
                    .filter(|items| !items.nullable && !schema.contains_key("prefixItems"))
                    .and_then(|items| Options::read(&items.schema).flatten())
                    .ok_or_else(|| {
                        let remedy = "ask for a `Vec` or `HashSet` of an enum without data, or for \
                                      one `String` that you split";
                        fault(name, "is a list of something other than choices", remedy)
                    })?;
                let mut items = Map::new();
                if !options.is_titled() {
                    items.insert("type".to_owned(), "string".into());
                }
                options.write("anyOf", &mut items);
                out.insert("items".to_owned(), items.into());
                copy(schema, &mut out, &["minItems", "maxItems"]);
                copy_default(name, schema, &mut out, |default| {
                    default
                        .as_array()
                        .is_some_and(|all| all.iter().all(|one| options.contains(one)))
                })?;
            }
            "object" => {
                let remedy = "put its fields into the form itself, or ask twice";
                return Err(fault(name, "is an object or a map, and forms are flat", remedy));
            }
            _ => return Err(fault(name, "has no one kind that a form can show", PICK_A_KIND)),
        }
        Ok(out.into())
    }
}

/// What a person chooses from: values, with titles once any of them has one.
struct Options(Vec<(String, Option<String>)>);

impl Options {
    /// Reads the schema of an enum. None when it is not one, `Some(None)` when a variant holds
    /// data.
    fn read(schema: &Map<String, Value>) -> Option<Option<Self>> {
        let variants = ["oneOf", "anyOf"].into_iter().find_map(|keyword| schema.get(keyword));
        let mut options = Vec::new();
        let complete = match variants {
            // schemars puts variants with docs here one by one and groups the others.
            Some(variants) => variants.as_array()?.iter().all(|variant| {
                variant.as_object().is_some_and(|variant| read_values(variant, &mut options))
            }),
            None if schema.contains_key("enum") || schema.contains_key("const") => {
                // A title here is the enum's or the field's, not that of a choice.
                let mut bare = schema.clone();
                bare.retain(|keyword, _| matches!(keyword.as_str(), "enum" | "const"));
                read_values(&bare, &mut options)
            }
            None => return None,
        };
        Some((complete && !options.is_empty()).then_some(Self(options)))
    }

    fn is_titled(&self) -> bool {
        self.0.iter().any(|(_, title)| title.is_some())
    }

    fn contains(&self, value: &Value) -> bool {
        value.as_str().is_some_and(|value| self.0.iter().any(|(option, _)| option == value))
    }

    /// Writes `enum`, or the titled form under `keyword`.
    fn write(&self, keyword: &str, out: &mut Map<String, Value>) {
        if self.is_titled() {
            let options = self.0.iter().map(
                |(value, title)| json!({"const": value, "title": title.as_ref().unwrap_or(value)}),
            );
            out.insert(keyword.to_owned(), options.collect());
        } else {
            out.insert("enum".to_owned(), self.0.iter().map(|(value, _)| value.as_str()).collect());
        }
    }
}

/// Adds the values of one variant, or of a group without docs. False when it is anything but
/// strings.
fn read_values(variant: &Map<String, Value>, options: &mut Vec<(String, Option<String>)>) -> bool {
    if let Some(value) = variant.get("const") {
        let Some(value) = value.as_str() else { return false };
        let title = ["title", "description"]
            .into_iter()
            .find_map(|keyword| variant.get(keyword).and_then(Value::as_str));
        options.push((value.to_owned(), title.map(str::to_owned)));
        return true;
    }
    let Some(values) = variant.get("enum").and_then(Value::as_array) else { return false };
    values
        .iter()
        .all(|value| value.as_str().map(|value| options.push((value.to_owned(), None))).is_some())
}

/// Takes the other schema out of a choice between it and null, which is how `Option` looks around
/// anything that is no plain type.
fn take_nullable_choice(schema: &mut Map<String, Value>) -> Option<Map<String, Value>> {
    for keyword in ["anyOf", "oneOf"] {
        let Some([left, right]) = schema.get(keyword).and_then(Value::as_array).map(Vec::as_slice)
        else {
            continue;
        };
        let is_null = |schema: &Value| schema.get("type").is_some_and(|kind| kind == "null");
        let other = match (is_null(left), is_null(right)) {
            (true, false) => right,
            (false, true) => left,
            _ => continue,
        };
        let other = other.as_object()?.clone();
        schema.remove(keyword);
        return Some(other);
    }
    None
}

fn copy(from: &Map<String, Value>, to: &mut Map<String, Value>, keywords: &[&str]) {
    for keyword in keywords {
        if let Some(value) = from.get(*keyword) {
            to.insert((*keyword).to_owned(), value.clone());
        }
    }
}

/// Copies the default if it has one. Null is how `Option` says that it has none.
fn copy_default(
    name: &str,
    from: &Map<String, Value>,
    to: &mut Map<String, Value>,
    fits: impl FnOnce(&Value) -> bool,
) -> Result<(), String> {
    if let Some(default) = from.get("default").filter(|default| !default.is_null()) {
        if !fits(default) {
            let remedy = "give a value that the form could return";
            return Err(fault(name, &format!("has the default {default} of another kind"), remedy));
        }
        to.insert("default".to_owned(), default.clone());
    }
    Ok(())
}

fn fault(name: &str, what: &str, remedy: &str) -> String {
    format!("the form's field `{name}` {what}: {remedy}")
}

const NOT_A_STRUCT: &str = "a form is a struct with named fields, without flattened maps or enums: \
                            wrap what you ask for in one";
const PICK_A_KIND: &str = "use a string, a number, a `bool`, an enum without data, or a list of \
                           such enums";
const UNIT_ENUM: &str = "use an enum whose variants hold nothing, and further fields for the data";
const MAX_LAYERS: usize = 8;

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet, HashSet};

    use serde::Serialize;

    use super::*;

    #[derive(JsonSchema, Serialize, PartialEq, Eq, Hash, Default)]
    #[serde(rename_all = "kebab-case")]
    #[expect(dead_code, reason = "only the schema is used")]
    enum Plain {
        #[default]
        Small,
        VeryLarge,
    }

    /// How it looks.
    #[derive(JsonSchema, PartialEq, Eq, Hash)]
    #[expect(dead_code, reason = "only the schema is used")]
    enum Titled {
        /// Like blood
        Red,
        #[schemars(title = "Sky blue", description = "Not shown")]
        Blue,
        Green,
    }

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only the schema is used")]
    enum Data {
        None,
        Some(u8),
    }

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only the schema is used")]
    struct Inner {
        a: u8,
    }

    /// Makes a struct with one field `f` and returns the schema of its form.
    macro_rules! form {
        ($(#[$attribute:meta])* $kind:ty) => {{
            #[derive(JsonSchema)]
            #[expect(dead_code, reason = "only the schema is used")]
            struct Sample {
                $(#[$attribute])*
                f: $kind,
            }
            form_schema_of::<Sample>()
        }};
    }

    #[expect(clippy::needless_pass_by_value, reason = "reads better at the calls")]
    fn required(member: Value) -> Result<Value, String> {
        Ok(json!({"type": "object", "properties": {"f": member}, "required": ["f"]}))
    }

    #[expect(clippy::needless_pass_by_value, reason = "reads better at the calls")]
    fn optional(member: Value) -> Result<Value, String> {
        Ok(json!({"type": "object", "properties": {"f": member}}))
    }

    #[test]
    fn strings_keep_what_a_form_can_say() {
        assert_eq!(form!(String), required(json!({"type": "string"})));
        assert_eq!(
            form!(
                /// Your name
                #[schemars(title = "Name", length(min = 1, max = 9), regex(pattern = "^a"), email)]
                String
            ),
            required(json!({
                "type": "string", "title": "Name", "description": "Your name",
                "minLength": 1, "maxLength": 9, "format": "email",
            }))
        );
        assert_eq!(
            form!(
                #[schemars(url)]
                String
            ),
            required(json!({"type": "string", "format": "uri"}))
        );
        for (format, kept) in
            [("date", true), ("date-time", true), ("uuid", false), ("hostname", false)]
        {
            let schema = json!({
                "type": "object",
                "properties": {"f": {"type": "string", "format": format}},
            });
            let member = if kept {
                json!({"type": "string", "format": format})
            } else {
                json!({"type": "string"})
            };
            assert_eq!(form_schema(&schema), optional(member));
        }
    }

    #[test]
    fn numbers_keep_their_bounds_and_lose_their_width() {
        assert_eq!(form!(u8), required(json!({"type": "integer", "minimum": 0, "maximum": 255})));
        assert_eq!(form!(i64), required(json!({"type": "integer"})));
        assert_eq!(form!(f64), required(json!({"type": "number"})));
        assert_eq!(
            form!(
                #[schemars(range(min = 0.5, max = 2.0))]
                f32
            ),
            required(json!({"type": "number", "minimum": 0.5, "maximum": 2.0}))
        );
        assert_eq!(form!(bool), required(json!({"type": "boolean"})));
    }

    #[test]
    fn an_option_is_the_plain_member_and_not_required() {
        assert_eq!(form!(Option<String>), optional(json!({"type": "string"})));
        assert_eq!(form!(Option<f32>), optional(json!({"type": "number"})));
        assert_eq!(form!(Option<Option<bool>>), optional(json!({"type": "boolean"})));
        assert_eq!(
            form!(Option<Plain>),
            optional(json!({"type": "string", "enum": ["small", "very-large"]}))
        );
        assert_eq!(
            form!(
                /// Which
                Option<Titled>
            ),
            optional(json!({"type": "string", "description": "Which", "oneOf": [
                {"const": "Green", "title": "Green"},
                {"const": "Red", "title": "Like blood"},
                {"const": "Blue", "title": "Sky blue"},
            ]}))
        );
        assert_eq!(
            form!(Option<Vec<Plain>>),
            optional(json!({
                "type": "array",
                "items": {"type": "string", "enum": ["small", "very-large"]},
            }))
        );
        let listed = json!({"type": "object", "required": ["f", "g"], "properties": {
            "f": {"type": ["string", "null"], "default": null}, "g": {"type": "boolean"},
        }});
        assert_eq!(form_schema(&listed).unwrap()["required"], json!(["g"]));
    }

    #[test]
    fn enums_are_single_selects_with_titles_if_any() {
        assert_eq!(
            form!(Plain),
            required(json!({"type": "string", "enum": ["small", "very-large"]}))
        );
        assert_eq!(
            form!(
                #[schemars(title = "Size")]
                Plain
            ),
            required(json!({"type": "string", "title": "Size", "enum": ["small", "very-large"]}))
        );
        assert_eq!(
            form!(Titled),
            required(json!({"type": "string", "description": "How it looks.", "oneOf": [
                {"const": "Green", "title": "Green"},
                {"const": "Red", "title": "Like blood"},
                {"const": "Blue", "title": "Sky blue"},
            ]}))
        );
        let single = json!({
            "type": "object",
            "properties": {"f": {"type": "string", "const": "a", "title": "T"}},
        });
        assert_eq!(
            form_schema(&single),
            optional(json!({"type": "string", "title": "T", "enum": ["a"]}))
        );
    }

    #[test]
    fn lists_of_enums_are_multi_selects() {
        let plain = json!({"type": "string", "enum": ["small", "very-large"]});
        assert_eq!(form!(HashSet<Plain>), required(json!({"type": "array", "items": plain})));
        assert_eq!(
            form!(#[schemars(length(min = 1, max = 2))] Vec<Plain>),
            required(json!({"type": "array", "items": plain, "minItems": 1, "maxItems": 2}))
        );
        assert_eq!(
            form!(Vec<Titled>),
            required(json!({"type": "array", "items": {"anyOf": [
                {"const": "Green", "title": "Green"},
                {"const": "Red", "title": "Like blood"},
                {"const": "Blue", "title": "Sky blue"},
            ]}}))
        );
    }

    #[test]
    fn defaults_are_kept_when_they_fit() {
        assert_eq!(
            form!(
                #[serde(default)]
                bool
            ),
            optional(json!({"type": "boolean", "default": false}))
        );
        assert_eq!(form!(#[serde(default)] Option<String>), optional(json!({"type": "string"})));
        assert_eq!(
            form!(
                #[serde(default)]
                Plain
            ),
            optional(
                json!({"type": "string", "enum": ["small", "very-large"], "default": "small"})
            )
        );
        assert_eq!(
            form!(#[serde(default)] Vec<Plain>).unwrap()["properties"]["f"]["default"],
            json!([])
        );
        for error in [
            form!(
                #[schemars(extend("default" = 1))]
                String
            ),
            form!(
                #[schemars(extend("default" = 1.5))]
                u8
            ),
            form!(
                #[schemars(extend("default" = "huge"))]
                Plain
            ),
            form!(#[schemars(extend("default" = ["huge"]))] Vec<Plain>),
        ] {
            assert!(error.unwrap_err().contains("field `f` has the default"));
        }
    }

    #[test]
    fn what_no_form_can_show_is_named_with_the_remedy() {
        for (form, remedy) in [
            (form!(Inner), "put its fields into the form"),
            (form!(Option<Inner>), "put its fields into the form"),
            (form!(BTreeMap<String, String>), "put its fields into the form"),
            (form!((u8, u8)), "a `Vec` or `HashSet` of an enum"),
            (form!(Vec<String>), "a `Vec` or `HashSet` of an enum"),
            (form!(Vec<Option<Plain>>), "a `Vec` or `HashSet` of an enum"),
            (form!(Vec<Vec<Plain>>), "a `Vec` or `HashSet` of an enum"),
            (form!(BTreeSet<u8>), "a `Vec` or `HashSet` of an enum"),
            (form!(Vec<Data>), "a `Vec` or `HashSet` of an enum"),
            (form!(Data), "variants hold nothing"),
            (form!(Option<Data>), "variants hold nothing"),
            (form!(()), "use a string"),
            (form!(Value), "use a string"),
            (
                form!(
                    #[schemars(extend("format" = "password"))]
                    String
                ),
                "URL elicitation",
            ),
            (
                form!(
                    #[schemars(extend("writeOnly" = true))]
                    String
                ),
                "URL elicitation",
            ),
        ] {
            let error = form.unwrap_err();
            assert!(
                error.starts_with("the form's field `f` ") && error.contains(remedy),
                "{error}"
            );
        }
        let numbers = json!({"type": "object", "properties": {"f": {"enum": [1, 2]}}});
        assert!(form_schema(&numbers).unwrap_err().contains("variants hold nothing"));
    }

    #[test]
    fn a_form_is_a_struct() {
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only the schema is used")]
        struct WithMap {
            a: u8,
            #[serde(flatten)]
            more: BTreeMap<String, u8>,
        }
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only the schema is used")]
        struct WithEnum {
            #[serde(flatten)]
            data: Data,
        }
        #[derive(JsonSchema)]
        struct Empty {}
        #[derive(JsonSchema)]
        #[serde(deny_unknown_fields)]
        #[expect(dead_code, reason = "only the schema is used")]
        struct Strict {
            a: bool,
        }
        for form in [
            form_schema_of::<String>(),
            form_schema_of::<Plain>(),
            form_schema_of::<Data>(),
            form_schema_of::<Vec<Inner>>(),
            form_schema_of::<BTreeMap<String, u8>>(),
            form_schema_of::<()>(),
            form_schema_of::<Value>(),
            form_schema_of::<WithMap>(),
            form_schema_of::<WithEnum>(),
        ] {
            assert!(form.unwrap_err().contains("a struct with named fields"));
        }
        assert_eq!(form_schema_of::<Empty>(), Ok(json!({"type": "object", "properties": {}})));
        assert_eq!(
            form_schema_of::<Strict>(),
            Ok(json!({
                "type": "object",
                "properties": {"a": {"type": "boolean"}},
                "required": ["a"],
            }))
        );
    }

    #[test]
    fn references_are_followed_within_bounds() {
        let schema = json!({
            "type": "object",
            "properties": {
                "a": {"$ref": "#/$defs/Size", "description": "The field's own"},
                "b": {"anyOf": [{"$ref": "#/$defs/Size"}, {"type": "null"}]},
            },
            "$defs": {"Size": {"type": "string", "enum": ["s"], "description": "The type's"}},
        });
        assert_eq!(
            form_schema(&schema),
            Ok(json!({"type": "object", "properties": {
                "a": {"type": "string", "enum": ["s"], "description": "The field's own"},
                "b": {"type": "string", "enum": ["s"], "description": "The type's"},
            }}))
        );
        let looping = json!({
            "type": "object",
            "properties": {"f": {"$ref": "#/$defs/A"}},
            "$defs": {"A": {"$ref": "#/$defs/A"}},
        });
        assert!(form_schema(&looping).is_err());
        let dangling = json!({"type": "object", "properties": {"f": {"$ref": "#/$defs/B"}}});
        assert!(form_schema(&dangling).is_err());

        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only the schema is used")]
        struct Recursive {
            f: Option<Box<Self>>,
        }
        assert!(form_schema_of::<Recursive>().unwrap_err().contains("forms are flat"));
    }
}
