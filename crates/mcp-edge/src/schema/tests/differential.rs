//! The same verdicts as the `jsonschema` crate, over generated schemas and values.
//!
//! `SCHEMA_SEED` and `SCHEMA_COUNT` choose which schemas; a disagreement names its seed. Two are
//! known:
//!
//! - To the crate `1e300` is the integer that its float stands for, and a multiple of 3. Here it is
//!   the decimal. All divisors that are generated divide both or neither.
//! - Below `unevaluated…` the crate follows a `$ref` to a dynamic anchor as if it were a
//!   `$dynamicRef` (draft 2020-12, section 8.2.2). See [`without_dynamic_anchor`].

use jsonschema::{Draft, Validator};
use serde_json::{Map, Value, json};

use super::Schema;

#[test]
fn another_implementation_gives_the_same_verdicts() {
    let number = |name| std::env::var(name).ok().map(|text| text.parse().unwrap());
    let first: u64 = number("SCHEMA_SEED").unwrap_or(1);
    let count = number("SCHEMA_COUNT").unwrap_or(2_000);
    let (mut good, mut bad, mut refused, mut wrong) = (0, 0, 0, Vec::new());
    for seed in first..first + count {
        let mut generator = Generator(seed);
        let document = generator.document();
        let (ours, theirs) = match (Schema::compile(&document), validator(&document)) {
            (Ok(ours), Ok(theirs)) => (ours, theirs),
            (Err(_), Err(_)) => {
                refused += 1;
                continue;
            }
            (ours, theirs) => {
                let (ours, theirs) = (ours.err(), theirs.err());
                wrong.push(format!("seed {seed}: {document}: {ours:?} and {theirs:?}"));
                continue;
            }
        };
        for _ in 0..8 {
            let value = generator.value(3);
            let verdict = ours.validate(&value);
            *if verdict.is_ok() { &mut good } else { &mut bad } += 1;
            if verdict.is_ok() != theirs.is_valid(&value)
                && verdict.is_ok()
                    != validator(&without_dynamic_anchor(&document)).unwrap().is_valid(&value)
            {
                wrong.push(format!("seed {seed}: {document} and {value}: {verdict:?}"));
            }
            check_report(&value, &verdict.err().unwrap_or_default(), seed);
        }
    }
    eprintln!("{good} good, {bad} bad, {refused} schemas refused by both");
    assert!(wrong.is_empty(), "{} disagreements:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count < 1_000 || (good > 2_000 && bad > 2_000), "the generator is one-sided");
}

fn validator(document: &Value) -> Result<Validator, String> {
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .should_validate_formats(false)
        .build(document)
        .map_err(|fault| fault.to_string())
}

/// The same schema, with the `$id` of a schema where a `$ref` has its dynamic anchor.
fn without_dynamic_anchor(document: &Value) -> Value {
    let text = document.to_string();
    serde_json::from_str(&text.replace(r#""$ref":"urn:two#node""#, r#""$ref":"urn:two""#)).unwrap()
}

/// Every fault says where, and fits one line.
fn check_report(value: &Value, faults: &[super::super::Violation], seed: u64) {
    for fault in faults {
        let parent = fault.instance.rfind('/').map_or("", |end| &fault.instance[..end]);
        assert!(value.pointer(parent).is_some(), "seed {seed}: {fault} in {value}");
        let line = fault.to_string();
        assert!(line.len() < 1_000 && !line.contains('\n'), "seed {seed}: {line}");
        assert!(fault.found.chars().count() <= 60, "seed {seed}: {line}");
    }
}

/// Splitmix64.
struct Generator(u64);

/// What a schema may refer to without applying itself to the same value: definitions from this one
/// on.
type Floor = usize;

const DEFINITIONS: usize = 4;
const NAMES: [&str; 5] = ["a", "b", "ab", "c/d", "é"];

impl Generator {
    fn document(&mut self) -> Value {
        let mut definitions = Map::new();
        for index in 0..DEFINITIONS {
            let mut definition = self.object(2, index + 1);
            match index {
                1 => _ = definition.insert("$anchor".to_owned(), json!("one")),
                2 => {
                    definition.insert("$id".to_owned(), json!("urn:two"));
                    definition.insert("$dynamicAnchor".to_owned(), json!("node"));
                }
                3 => {
                    definition.insert("$id".to_owned(), json!("urn:three"));
                    if self.one_in(2) {
                        definition.insert("$dynamicAnchor".to_owned(), json!("node"));
                    }
                }
                _ => {}
            }
            definitions.insert(format!("d~{index}"), definition.into());
        }
        let mut root = self.object(3, 0);
        root.insert("$id".to_owned(), json!("urn:root"));
        root.insert("$defs".to_owned(), definitions.into());
        root.into()
    }

    fn schema(&mut self, depth: usize, floor: Floor) -> Value {
        match self.below(12) {
            0 => json!(true),
            1 => json!(false),
            _ => self.object(depth, floor).into(),
        }
    }

    fn object(&mut self, depth: usize, floor: Floor) -> Map<String, Value> {
        let mut schema = Map::new();
        for _ in 0..1 + self.below(3) {
            self.keyword(&mut schema, depth, floor);
        }
        schema
    }

    fn keyword(&mut self, schema: &mut Map<String, Value>, depth: usize, floor: Floor) {
        const PLAIN: &[&str] = &[
            "type",
            "type",
            "enum",
            "const",
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "multipleOf",
            "minLength",
            "maxLength",
            "minItems",
            "maxItems",
            "minProperties",
            "maxProperties",
            "pattern",
            "uniqueItems",
            "required",
            "dependentRequired",
            "$ref",
            "$dynamicRef",
        ];
        const NESTED: &[&str] = &[
            "allOf",
            "anyOf",
            "oneOf",
            "not",
            "if",
            "properties",
            "properties",
            "patternProperties",
            "additionalProperties",
            "dependentSchemas",
            "propertyNames",
            "prefixItems",
            "items",
            "contains",
            "unevaluatedProperties",
            "unevaluatedItems",
        ];
        let is_plain = depth == 0 || self.one_in(3);
        let keyword = if is_plain { self.pick(PLAIN) } else { self.pick(NESTED) };
        let inner = depth.saturating_sub(1);
        let value = match keyword {
            "type" if self.one_in(3) => {
                json!([self.pick(&["null", "string"]), self.pick(&["object", "array", "integer"])])
            }
            "type" => json!(self.pick(&[
                "null", "boolean", "integer", "number", "string", "array", "object", "object",
                "array"
            ])),
            "enum" => (0..1 + self.below(3)).map(|_| self.value(1)).collect(),
            "const" => self.value(1),
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => self.number(),
            "multipleOf" => {
                serde_json::from_str(self.pick(&["1", "2", "0.5", "0.1", "0.01", "4.0"])).unwrap()
            }
            "minLength" | "minItems" | "minProperties" => json!(self.below(3)),
            "maxLength" | "maxItems" | "maxProperties" => json!(self.below(4)),
            "pattern" => json!(self.pick(&["^a", "b$", "^[a-c]+$", "^.$", r"\d", r"^\w*$"])),
            "uniqueItems" => json!(!self.one_in(4)),
            "required" => json!([self.pick(&NAMES)]),
            "dependentRequired" => json!({ self.pick(&NAMES): [self.pick(&NAMES)] }),
            // Applied to the same value: only forwards.
            "$ref" | "$dynamicRef" if floor < DEFINITIONS => {
                let target = floor + self.below(DEFINITIONS - floor);
                let text = match (keyword, target, self.below(2)) {
                    ("$ref", 1, 0) => "urn:root#one".to_owned(),
                    ("$ref", 2, 0) => "urn:two".to_owned(),
                    ("$ref", 2, _) => "urn:two#node".to_owned(),
                    ("$ref", 3, 0) => "urn:three".to_owned(),
                    ("$dynamicRef", ..) => "urn:two#node".to_owned(),
                    (_, target, _) => format!("urn:root#/$defs/d~0{target}"),
                };
                if keyword == "$dynamicRef" && floor > 2 {
                    return;
                }
                json!(text)
            }
            "$ref" | "$dynamicRef" => return,
            "allOf" | "anyOf" | "oneOf" => {
                (0..1 + self.below(3)).map(|_| self.schema(inner, floor)).collect()
            }
            "if" => {
                for branch in ["then", "else"] {
                    if !self.one_in(3) {
                        schema.insert(branch.to_owned(), self.schema(inner, floor));
                    }
                }
                self.schema(inner, floor)
            }
            "not" => self.schema(inner, floor),
            "dependentSchemas" => json!({ self.pick(&NAMES): self.schema(inner, floor) }),
            "properties" => {
                let members = (0..1 + self.below(3))
                    .map(|_| (self.pick(&NAMES).to_owned(), self.child(inner)));
                members.collect::<Map<_, _>>().into()
            }
            "patternProperties" => {
                json!({ self.pick(&["^a", "b", "/", "."]): self.child(inner) })
            }
            "prefixItems" => (0..1 + self.below(2)).map(|_| self.child(inner)).collect(),
            "contains" => {
                if self.one_in(2) {
                    schema.insert("minContains".to_owned(), json!(self.below(3)));
                }
                if self.one_in(3) {
                    schema.insert("maxContains".to_owned(), json!(self.below(3)));
                }
                self.child(inner)
            }
            "unevaluatedProperties" | "unevaluatedItems" if self.one_in(2) => json!(false),
            _ => self.child(inner),
        };
        schema.insert(keyword.to_owned(), value);
    }

    /// A schema for a part of the value, which may refer to anything.
    fn child(&mut self, depth: usize) -> Value {
        match self.below(8) {
            0 => json!({ "$ref": "urn:root" }),
            1 => json!({ "$dynamicRef": "urn:two#node" }),
            _ => self.schema(depth, 0),
        }
    }

    fn value(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 5 } else { 12 }) {
            0 => Value::Null,
            1 => json!(self.one_in(2)),
            2 | 3 => self.number(),
            4 => json!(self.pick(&["", "a", "b", "ab", "abc", "é", "1", "c/d"])),
            5..=7 => (0..self.below(4)).map(|_| self.value(depth - 1)).collect(),
            _ => {
                let members = (0..self.below(4))
                    .map(|_| (self.pick(&NAMES).to_owned(), self.value(depth - 1)));
                members.collect::<Map<_, _>>().into()
            }
        }
    }

    fn number(&mut self) -> Value {
        let text = self.pick(&[
            "0",
            "-0.0",
            "1",
            "1.0",
            "2",
            "3",
            "-1",
            "0.5",
            "1.5",
            "0.1",
            "0.3",
            "1.1",
            "19.99",
            "1e3",
            "1000",
            "9007199254740993",
            "18446744073709551615",
            "1e300",
        ]);
        serde_json::from_str(text).unwrap()
    }

    fn pick<'a>(&mut self, options: &[&'a str]) -> &'a str {
        options[self.below(options.len())]
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ mixed >> 31) % bound as u64).unwrap()
    }
}
