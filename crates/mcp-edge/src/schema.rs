//! JSON Schema, draft 2020-12: compiled once, then a verdict and every fault for each value.
//!
//! It is small on purpose (it runs where each kilobyte is loaded anew) and strict: what it does not
//! support is an error when a schema is compiled, never a rule that is left out (SCHEMA-05). It
//! fetches nothing: references reach pointers, anchors and embedded `$id` resources of the same
//! document (SCHEMA-06, SCHEMA-08). `format` and the `content…` keywords are annotations
//! (SCHEMA-12), keywords that draft 2020-12 does not know pass untouched.
//!
//! Numbers count by their decimal value, as far as `serde_json` has read them exactly.
//!
//! [`compile`] turns a document into [`Node`]s, one per subschema, which refer to each other by
//! index. A node has [`Assertion`]s, which look at a value alone, and [`Rule`]s, which apply other
//! nodes to it or to its parts; [`validate`] walks both, [`report`] finds the words.

mod assertion;
mod compile;
mod number;
mod pattern;
mod reference;
mod report;
mod validate;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::Value;

use self::{assertion::Assertion, pattern::Pattern, validate::Run};

pub(crate) use self::report::Violation;

/// A compiled schema.
#[derive(Debug)]
pub(crate) struct Schema {
    /// The first is the root.
    nodes: Vec<Node>,
}

impl Schema {
    /// Compiles a document.
    ///
    /// # Errors
    /// Says where (a JSON pointer), which keyword, and what to write instead.
    pub(crate) fn compile(document: &Value) -> Result<Self, String> {
        compile::compile(document)
    }

    /// Judges a value.
    ///
    /// # Errors
    /// All faults, up to [`MAX_VIOLATIONS`](report::MAX_VIOLATIONS); never an empty list. A value
    /// that takes more work than the bounds allow is at fault as well (SCHEMA-09).
    pub(crate) fn validate(&self, value: &Value) -> Result<(), Vec<Violation>> {
        // Almost every value is good, and then no word of a report has to be written.
        if Run::new(&self.nodes, false).judge(value) {
            return Ok(());
        }
        let mut run = Run::new(&self.nodes, true);
        run.judge(value);
        Err(run.into_violations())
    }

    /// Judges JSON text.
    ///
    /// # Errors
    /// As [`validate`](Self::validate); also for text that is no JSON or nested too deeply.
    pub(crate) fn validate_json(&self, json: &str) -> Result<(), Vec<Violation>> {
        match serde_json::from_str(json) {
            Ok(value) => self.validate(&value),
            Err(fault) => Err(vec![Violation::not_json(&fault)]),
        }
    }
}

/// Violations as the lines of one text.
pub(crate) fn lines(violations: &[Violation]) -> String {
    violations.iter().map(Violation::to_string).collect::<Vec<_>>().join("\n")
}

/// A subschema.
#[derive(Debug, Default)]
struct Node {
    /// The schema resource that it belongs to: what `$dynamicRef` looks through.
    resource: usize,
    assertions: Vec<Assertion>,
    /// `Unevaluated` ones come last.
    rules: Vec<Rule>,
}

impl Node {
    /// Whether it is the schema `false`, or as good as that.
    fn is_never(&self) -> bool {
        matches!(self.assertions.as_slice(), [Assertion::Never])
    }

    fn has_unevaluated(&self) -> bool {
        matches!(self.rules.last(), Some(Rule::Unevaluated { .. }))
    }
}

/// A keyword, or several that work together, that applies other nodes or has faults of its own.
#[derive(Debug)]
enum Rule {
    /// `$ref`, `allOf`: one more node for the same value.
    Also(usize),
    AnyOf(Vec<usize>),
    /// `contains` with its bounds.
    Contains {
        schema: usize,
        min: u64,
        max: u64,
    },
    /// `dependentSchemas`, one member.
    DependentSchema {
        when: String,
        schema: usize,
    },
    /// `$dynamicRef`: the node of the outermost resource that is being evaluated and is among the
    /// targets.
    Dynamic {
        fallback: usize,
        /// Resources and their nodes with the dynamic anchor.
        targets: Vec<(usize, usize)>,
    },
    If {
        condition: usize,
        then: Option<usize>,
        otherwise: Option<usize>,
    },
    /// `prefixItems` and `items`.
    Items {
        prefix: Vec<usize>,
        rest: Option<usize>,
    },
    /// `properties`, `patternProperties` and `additionalProperties`.
    Members {
        named: BTreeMap<String, usize>,
        patterns: Vec<(Pattern, usize)>,
        rest: Option<usize>,
    },
    /// `not`, with its text.
    Not {
        schema: usize,
        text: String,
    },
    OneOf(Vec<usize>),
    PropertyNames(usize),
    /// `required`, and `dependentRequired` by one member.
    Required {
        when: Option<String>,
        /// Names, and the nodes of those that `properties` speaks of.
        names: Vec<(String, Option<usize>)>,
    },
    Unevaluated {
        of_objects: bool,
        schema: usize,
    },
}
