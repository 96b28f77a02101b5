//! From a document to nodes.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value};

use super::{
    Node, Rule, Schema,
    assertion::{ARRAY, Assertion, End, Kind, OBJECT, STRING, Types},
    number::{self, Divisor},
    pattern::Pattern,
    reference::{push_token, resolve, split_fragment},
    report,
};
use crate::uri::percent_decode;

pub(super) fn compile(document: &Value) -> Result<Schema, String> {
    let mut compiler = Compiler {
        document,
        nodes: Vec::new(),
        places: BTreeMap::new(),
        resources: vec![Resource { base: String::new(), location: String::new() }],
        anchors: Vec::new(),
        references: Vec::new(),
    };
    compiler.subschema(document, String::new(), 0, 0)?;
    // To follow one may compile a place that no keyword has led to, with references of its own.
    while let Some(reference) = compiler.references.pop() {
        compiler.follow(&reference)?;
    }
    compiler.find_targets();
    compiler.refuse_loops()?;
    Ok(Schema { nodes: compiler.nodes })
}

struct Compiler<'a> {
    document: &'a Value,
    nodes: Vec<Node>,
    /// From pointers to nodes.
    places: BTreeMap<String, usize>,
    /// The first is the document.
    resources: Vec<Resource>,
    anchors: Vec<Anchor<'a>>,
    references: Vec<Reference<'a>>,
}

struct Resource {
    base: String,
    location: String,
}

struct Anchor<'a> {
    resource: usize,
    name: &'a str,
    node: usize,
    is_dynamic: bool,
}

/// One that is still to be resolved.
struct Reference<'a> {
    from: Place<'a>,
    keyword: &'static str,
    text: &'a str,
    node: usize,
    /// Where its rule is among those of the node.
    rule: usize,
}

/// A schema object that is being compiled.
#[derive(Clone)]
struct Place<'a> {
    object: &'a Map<String, Value>,
    location: String,
    resource: usize,
    depth: usize,
}

impl<'a> Compiler<'a> {
    /// Compiles what stands at a location, unless that was done before.
    fn subschema(
        &mut self,
        value: &'a Value,
        location: String,
        resource: usize,
        depth: usize,
    ) -> Result<usize, String> {
        if let Some(index) = self.places.get(&location) {
            return Ok(*index);
        }
        let index = self.nodes.len();
        if index == MAX_SUBSCHEMAS {
            return Err(format!("the schema has more than {MAX_SUBSCHEMAS} subschemas"));
        }
        if depth == MAX_DEPTH {
            return Err(format!("the schema is nested more than {MAX_DEPTH} levels deep"));
        }
        self.nodes.push(Node { resource, ..Node::default() });
        self.places.insert(location.clone(), index);
        match value {
            Value::Bool(true) => {}
            Value::Bool(false) => self.nodes[index].assertions.push(Assertion::Never),
            Value::Object(object) => {
                let mut place = Place { object, location, resource, depth };
                self.identify(&mut place, index)?;
                let assertions = place.assertions()?;
                self.nodes[index].resource = place.resource;
                self.nodes[index].assertions = assertions;
                self.rules(&place, index)?;
            }
            _ => return Err(fault(&location, None, "a schema is an object or a boolean")),
        }
        Ok(index)
    }

    /// Reads `$schema`, `$id` and anchors.
    fn identify(&mut self, place: &mut Place<'a>, index: usize) -> Result<(), String> {
        if let Some(dialect) = place.text("$schema")?
            && dialect.strip_suffix('#').unwrap_or(dialect) != DIALECT
        {
            let remedy = format!("only {DIALECT} is supported, which is also the default");
            return Err(place.fault("$schema", &remedy));
        }
        if place.object.contains_key("$vocabulary") {
            return Err(place.fault("$vocabulary", "meta-schemas are not supported; remove it"));
        }
        if let Some(id) = place.text("$id")? {
            let (id, fragment) = split_fragment(id);
            if !fragment.is_empty() {
                return Err(place.fault("$id", "no fragment is allowed; name it with `$anchor`"));
            }
            let base = resolve(&self.resources[place.resource].base, id);
            let resource = Resource { base, location: place.location.clone() };
            if index == 0 {
                self.resources[0] = resource;
            } else if self.resources.iter().any(|known| known.base == resource.base) {
                return Err(place.fault("$id", "another schema has the same one"));
            } else {
                place.resource = self.resources.len();
                self.resources.push(resource);
            }
        }
        for keyword in ["$anchor", "$dynamicAnchor"] {
            let Some(name) = place.text(keyword)? else { continue };
            let is_name = name
                .starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
            if !is_name {
                return Err(place.fault(keyword, "write ASCII letters, digits, `-`, `_` and `.`"));
            }
            let resource = place.resource;
            if self.anchor(resource, name).is_some_and(|known| known.node != index) {
                return Err(place.fault(keyword, "another schema has the same one"));
            }
            let is_dynamic = keyword == "$dynamicAnchor";
            self.anchors.push(Anchor { resource, name, node: index, is_dynamic });
        }
        Ok(())
    }

    /// Reads the keywords that hold schemas, and `required`.
    fn rules(&mut self, place: &Place<'a>, index: usize) -> Result<(), String> {
        let mut rules = Vec::new();
        for keyword in ["$ref", "$dynamicRef"] {
            if let Some(text) = place.text(keyword)? {
                let (from, rule) = (place.clone(), rules.len());
                self.references.push(Reference { from, keyword, text, node: index, rule });
                rules.push(Rule::Also(index));
            }
        }
        rules.extend(self.list(place, "allOf")?.unwrap_or_default().into_iter().map(Rule::Also));
        rules.extend(self.list(place, "anyOf")?.map(Rule::AnyOf));
        rules.extend(self.list(place, "oneOf")?.map(Rule::OneOf));
        if let Some(schema) = self.one(place, "not")? {
            let text = place.object.get("not").map(report::shorten).unwrap_or_default();
            rules.push(Rule::Not { schema, text });
        }
        let (condition, then) = (self.one(place, "if")?, self.one(place, "then")?);
        let otherwise = self.one(place, "else")?;
        rules.extend(condition.map(|condition| Rule::If { condition, then, otherwise }));

        let named = self.map(place, "properties")?.unwrap_or_default();
        let names = |names: Vec<&'a str>| {
            names.into_iter().map(|name| (name.to_owned(), find(&named, name))).collect()
        };
        if let Some(required) = place.read("required", names_of, NAMES)? {
            rules.push(Rule::Required { when: None, names: names(required) });
        }
        let dependencies = place.read("dependentRequired", Value::as_object, "an object")?;
        for (when, value) in dependencies.into_iter().flatten() {
            let required = names_of(value).ok_or_else(|| {
                place.fault("dependentRequired", "write lists of different names")
            })?;
            rules.push(Rule::Required { when: Some(when.clone()), names: names(required) });
        }
        for (when, schema) in self.map(place, "dependentSchemas")?.unwrap_or_default() {
            rules.push(Rule::DependentSchema { when: when.to_owned(), schema });
        }
        rules.extend(self.one(place, "propertyNames")?.map(Rule::PropertyNames));
        let by_pattern = self.map(place, "patternProperties")?.unwrap_or_default();
        let rest = self.one(place, "additionalProperties")?;
        if !named.is_empty() || !by_pattern.is_empty() || rest.is_some() {
            let pattern = |(source, schema)| match Pattern::new(source) {
                Ok(pattern) => Ok((pattern, schema)),
                Err(what) => Err(place.fault("patternProperties", &what)),
            };
            let patterns = by_pattern.into_iter().map(pattern).collect::<Result<_, _>>()?;
            // `collect` would bring a sort along.
            let mut members = BTreeMap::new();
            members.extend(named.into_iter().map(|(name, schema)| (name.to_owned(), schema)));
            rules.push(Rule::Members { named: members, patterns, rest });
        }

        let prefix = self.list(place, "prefixItems")?;
        let rest = self.one(place, "items")?;
        if prefix.is_some() || rest.is_some() {
            rules.push(Rule::Items { prefix: prefix.unwrap_or_default(), rest });
        }
        let min = place.size("minContains")?.unwrap_or(1);
        let max = place.size("maxContains")?.unwrap_or(u64::MAX);
        let contains = self.one(place, "contains")?;
        rules.extend(contains.map(|schema| Rule::Contains { schema, min, max }));
        for (keyword, of_objects) in [("unevaluatedItems", false), ("unevaluatedProperties", true)]
        {
            let schema = self.one(place, keyword)?;
            rules.extend(schema.map(|schema| Rule::Unevaluated { of_objects, schema }));
        }

        // They apply nowhere by themselves.
        self.map(place, "$defs")?;
        self.one(place, "contentSchema")?;
        self.nodes[index].rules = rules;
        Ok(())
    }

    fn one(&mut self, place: &Place<'a>, keyword: &str) -> Result<Option<usize>, String> {
        let Some(value) = place.object.get(keyword) else { return Ok(None) };
        if value.is_array() && keyword == "items" {
            return Err(place.fault(keyword, "name a list of schemas `prefixItems`"));
        }
        self.inner(place, keyword, None, value).map(Some)
    }

    fn list(&mut self, place: &Place<'a>, keyword: &str) -> Result<Option<Vec<usize>>, String> {
        let list = |value: &'a Value| value.as_array().filter(|values| !values.is_empty());
        let Some(values) = place.read(keyword, list, "a list of one or more schemas")? else {
            return Ok(None);
        };
        let inner = values.iter().enumerate().map(|(position, value)| {
            self.inner(place, keyword, Some(&position.to_string()), value)
        });
        inner.collect::<Result<_, _>>().map(Some)
    }

    fn map(
        &mut self,
        place: &Place<'a>,
        keyword: &str,
    ) -> Result<Option<Vec<(&'a str, usize)>>, String> {
        let Some(values) = place.read(keyword, Value::as_object, "an object of schemas")? else {
            return Ok(None);
        };
        let inner = values.iter().map(|(name, value)| {
            self.inner(place, keyword, Some(name), value).map(|schema| (name.as_str(), schema))
        });
        inner.collect::<Result<_, _>>().map(Some)
    }

    /// Compiles the schema of a keyword, or one below it.
    fn inner(
        &mut self,
        place: &Place<'a>,
        keyword: &str,
        token: Option<&str>,
        value: &'a Value,
    ) -> Result<usize, String> {
        let mut location = place.location.clone();
        push_token(&mut location, keyword);
        if let Some(token) = token {
            push_token(&mut location, token);
        }
        self.subschema(value, location, place.resource, place.depth + 1)
    }

    /// Resolves a reference within the document (SCHEMA-06, SCHEMA-08).
    fn follow(&mut self, reference: &Reference<'a>) -> Result<(), String> {
        let Reference { from, keyword, text, .. } = reference;
        let (uri, fragment) = split_fragment(text);
        let uri = resolve(&self.resources[from.resource].base, uri);
        let resource = self.resources.iter().position(|resource| resource.base == uri);
        let resource = resource.ok_or_else(|| {
            let what = format!(
                "`{text}` leaves the document and nothing is fetched; copy what it names to `$defs`"
            );
            from.fault(keyword, &what)
        })?;
        let dangling = || from.fault(keyword, &format!("`{text}` names nothing in the document"));
        let fragment = percent_decode(fragment).ok_or_else(dangling)?;
        let (target, is_dynamic) = if fragment.is_empty() || fragment.starts_with('/') {
            let location = [self.resources[resource].location.as_str(), &fragment].concat();
            let value = self.document.pointer(&location).ok_or_else(dangling)?;
            let depth = location.matches('/').count();
            let owner = self.owner(&location);
            (self.subschema(value, location, owner, depth)?, false)
        } else {
            let anchor = self.anchor(resource, &fragment).ok_or_else(dangling)?;
            (anchor.node, anchor.is_dynamic)
        };
        let Some(rule) = self.nodes[reference.node].rules.get_mut(reference.rule) else {
            return Ok(());
        };
        *rule = if is_dynamic && *keyword == "$dynamicRef" {
            // All that carry the name, as long as their resources are not known.
            Rule::Dynamic { fallback: target, targets: Vec::new() }
        } else {
            Rule::Also(target)
        };
        Ok(())
    }

    /// If a schema has an anchor of each kind with one name, the dynamic one.
    fn anchor(&self, resource: usize, name: &str) -> Option<&Anchor<'a>> {
        let is_it = |anchor: &&Anchor<'_>| anchor.resource == resource && anchor.name == name;
        self.anchors.iter().rfind(is_it)
    }

    /// The resource of the innermost schema around a location.
    fn owner(&self, location: &str) -> usize {
        let mut around = location;
        loop {
            if let Some(index) = self.places.get(around) {
                return self.nodes[*index].resource;
            }
            match around.rfind('/') {
                Some(end) => around = &around[..end],
                None => return 0,
            }
        }
    }

    /// Gives each `$dynamicRef` the schemas that it may mean, now that all are known.
    fn find_targets(&mut self) {
        for node in &mut self.nodes {
            for rule in &mut node.rules {
                let Rule::Dynamic { fallback, targets } = rule else { continue };
                let anchors = self.anchors.iter().filter(|anchor| anchor.is_dynamic);
                let Some(named) = anchors.clone().find(|anchor| anchor.node == *fallback) else {
                    continue;
                };
                let same = anchors.filter(|anchor| anchor.name == named.name);
                targets.extend(same.map(|anchor| (anchor.resource, anchor.node)));
            }
        }
    }

    /// Refuses schemas that apply themselves to the same value again, which would never end. Those
    /// that only do so by a `$dynamicRef` run into the bounds of a walk.
    fn refuse_loops(&self) -> Result<(), String> {
        let mut heights = vec![Height::Unknown; self.nodes.len()];
        for index in 0..self.nodes.len() {
            self.height(index, &mut heights, 0).map_err(|index| {
                let location = self.places.iter().find(|(_, place)| **place == index);
                let location = location.map_or("", |(location, _)| location);
                fault(
                    location,
                    None,
                    "it refers to itself for the same value, or through more than 128 others",
                )
            })?;
        }
        Ok(())
    }

    /// How many nodes apply each other to one value. The error is a node of a loop, or of a chain
    /// that is too long.
    fn height(&self, index: usize, heights: &mut [Height], depth: usize) -> Result<usize, usize> {
        match heights[index] {
            Height::Known(height) => return Ok(height),
            Height::Unknown if depth < MAX_DEPTH => heights[index] = Height::Open,
            Height::Unknown | Height::Open => return Err(index),
        }
        let mut height = 0;
        let mut visit = |inner: usize| -> Result<(), usize> {
            height = height.max(1 + self.height(inner, heights, depth + 1)?);
            Ok(())
        };
        for rule in &self.nodes[index].rules {
            match rule {
                Rule::Also(schema)
                | Rule::Not { schema, .. }
                | Rule::DependentSchema { schema, .. }
                | Rule::Dynamic { fallback: schema, .. } => visit(*schema)?,
                Rule::AnyOf(schemas) | Rule::OneOf(schemas) => {
                    schemas.iter().try_for_each(|schema| visit(*schema))?;
                }
                Rule::If { condition, then, otherwise } => {
                    let branches = [Some(condition), then.as_ref(), otherwise.as_ref()];
                    branches.into_iter().flatten().try_for_each(|schema| visit(*schema))?;
                }
                _ => {}
            }
        }
        if height > MAX_DEPTH {
            return Err(index);
        }
        heights[index] = Height::Known(height);
        Ok(height)
    }
}

#[derive(Clone, Copy)]
enum Height {
    Known(usize),
    /// Being found out, further up.
    Open,
    Unknown,
}

impl<'a> Place<'a> {
    /// Reads the keywords that look at a value alone, and checks annotations (SCHEMA-04).
    fn assertions(&self) -> Result<Vec<Assertion>, String> {
        let mut out = Vec::new();
        if let Some(types) =
            self.read("type", types_of, "the name of a type, or a list of names")?
        {
            out.push(Assertion::Types(types));
        }
        if let Some(values) = self.read("enum", Value::as_array, "a list of values")? {
            out.push(Assertion::Enum(values.clone()));
        }
        out.extend(self.object.get("const").map(|value| Assertion::Enum(vec![value.clone()])));
        if let Some(divisor) =
            self.read("multipleOf", divisor_of, "a number above zero, of at most 19 digits")?
        {
            out.push(Assertion::MultipleOf(divisor));
        }
        for (keyword, end, exclusive) in [
            ("minimum", End::Least, false),
            ("exclusiveMinimum", End::Least, true),
            ("maximum", End::Most, false),
            ("exclusiveMaximum", End::Most, true),
        ] {
            let limit = self.read(keyword, Value::as_number, "a number")?.cloned();
            out.extend(limit.map(|limit| Assertion::Range { end, exclusive, limit }));
        }
        const SIZES: [(&str, &Kind, End); 6] = [
            ("minLength", &STRING, End::Least),
            ("maxLength", &STRING, End::Most),
            ("minItems", &ARRAY, End::Least),
            ("maxItems", &ARRAY, End::Most),
            ("minProperties", &OBJECT, End::Least),
            ("maxProperties", &OBJECT, End::Most),
        ];
        for (keyword, of, end) in SIZES {
            out.extend(self.size(keyword)?.map(|limit| Assertion::Size { of, end, limit }));
        }
        if let Some(source) = self.text("pattern")? {
            let pattern = Pattern::new(source).map_err(|what| self.fault("pattern", &what))?;
            out.push(Assertion::Pattern(pattern));
        }
        if self.read("uniqueItems", Value::as_bool, BOOLEAN)? == Some(true) {
            out.push(Assertion::Unique);
        }

        let texts = ["title", "description", "$comment", "format"];
        for keyword in texts.into_iter().chain(["contentEncoding", "contentMediaType"]) {
            self.text(keyword)?;
        }
        for keyword in ["deprecated", "readOnly", "writeOnly"] {
            self.read(keyword, Value::as_bool, BOOLEAN)?;
        }
        self.read("examples", Value::as_array, "a list of values")?;
        Ok(out)
    }

    fn text(&self, keyword: &str) -> Result<Option<&'a str>, String> {
        self.read(keyword, Value::as_str, "a string")
    }

    fn size(&self, keyword: &str) -> Result<Option<u64>, String> {
        let size = |value: &Value| value.as_number().and_then(number::size);
        self.read(keyword, size, "a non-negative integer")
    }

    /// Reads a keyword if it is there.
    fn read<T>(
        &self,
        keyword: &str,
        read: fn(&'a Value) -> Option<T>,
        kind: &str,
    ) -> Result<Option<T>, String> {
        match self.object.get(keyword) {
            None => Ok(None),
            Some(value) => read(value).map(Some).ok_or_else(|| {
                self.fault(keyword, &format!("write {kind}, not {}", report::shorten(value)))
            }),
        }
    }

    fn fault(&self, keyword: &str, remedy: &str) -> String {
        fault(&self.location, Some(keyword), remedy)
    }
}

/// `#` is the document, as in a reference.
fn fault(location: &str, keyword: Option<&str>, remedy: &str) -> String {
    match keyword {
        Some(keyword) => format!("schema at `#{location}`, `{keyword}`: {remedy}"),
        None => format!("schema at `#{location}`: {remedy}"),
    }
}

fn find(named: &[(&str, usize)], name: &str) -> Option<usize> {
    named.iter().find(|(known, _)| *known == name).map(|(_, schema)| *schema)
}

fn types_of(value: &Value) -> Option<Types> {
    let none = Types::default();
    match value {
        Value::Array(names) if !names.is_empty() => {
            names.iter().try_fold(none, |types, name| types.with(name.as_str()?))
        }
        _ => none.with(value.as_str()?),
    }
}

fn names_of(value: &Value) -> Option<Vec<&str>> {
    let names: Vec<_> = value.as_array()?.iter().map(Value::as_str).collect::<Option<_>>()?;
    let is_new = |(position, name)| !names[..position].contains(name);
    names.iter().enumerate().all(is_new).then_some(names)
}

fn divisor_of(value: &Value) -> Option<Divisor> {
    value.as_number().and_then(|number: &Number| Divisor::new(number))
}

/// The dialect of MCP (SCHEMA-01, SCHEMA-03).
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
const NAMES: &str = "a list of different names";
const BOOLEAN: &str = "true or false";
/// Bounds of a schema (SCHEMA-09).
const MAX_SUBSCHEMAS: usize = 10_000;
/// Deepest nesting of subschemas, and of those that apply each other to one value.
const MAX_DEPTH: usize = 128;
