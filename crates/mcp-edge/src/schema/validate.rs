//! The walk over a value.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{
    Node, Pattern, Rule,
    assertion::{pattern_cost, plural},
    reference::push_token,
    report::{self, Kind, MAX_POINTER, MAX_VIOLATIONS, Violation, describe, shorten, shorten_text},
};

/// Which members or items of a value some rule has looked at.
type Marks = Vec<bool>;

/// One walk.
///
/// Work is counted in steps, about one for each node that is applied to a value, and bounded:
/// alternatives inside of alternatives could else make a short value take forever. Without steps
/// every verdict is "bad", up to the root.
pub(super) struct Run<'a> {
    nodes: &'a [Node],
    /// None when only the verdict counts, which lets a walk stop at the first fault.
    faults: Option<Vec<Violation>>,
    /// Where the walk is, if faults are told.
    path: String,
    /// The resources on the way here.
    scope: Vec<usize>,
    depth: usize,
    steps: usize,
}

impl<'a> Run<'a> {
    pub(super) fn new(nodes: &'a [Node], with_faults: bool) -> Self {
        let faults = with_faults.then(Vec::new);
        Self { nodes, faults, path: String::new(), scope: Vec::new(), depth: 0, steps: MAX_STEPS }
    }

    /// Whether the value is good. A walk that ran out of steps says no.
    pub(super) fn judge(&mut self, value: &Value) -> bool {
        self.node(0, value, None) && self.steps > 0
    }

    /// The faults that a walk has told of, at least one.
    pub(super) fn into_violations(self) -> Vec<Violation> {
        let mut faults = self.faults.unwrap_or_default();
        if faults.is_empty() || self.steps == 0 {
            faults.truncate(MAX_VIOLATIONS - 1);
            faults.push(Violation {
                instance: String::new(),
                expected: "a smaller value".to_owned(),
                found: "one that is too complex to check".to_owned(),
                kind: Kind::Other,
            });
        }
        faults
    }

    /// Applies a node to a value. A good one adds to the marks of the value.
    fn node(&mut self, index: usize, value: &Value, outer: Option<&mut Marks>) -> bool {
        let node = &self.nodes[index];
        if self.depth == MAX_DEPTH || !self.spend(1) {
            self.steps = 0;
            return false;
        }
        self.depth += 1;
        let enters = self.scope.last() != Some(&node.resource);
        if enters {
            self.scope.push(node.resource);
        }
        let mut good = self.assertions(index, value);
        let mut marks = None;
        if outer.is_some() || node.has_unevaluated() {
            let size = match value {
                Value::Array(items) => items.len(),
                Value::Object(members) => members.len(),
                _ => 0,
            };
            good &= self.spend(size / 16);
            marks = Some(vec![false; size]);
        }
        for rule in &node.rules {
            // What a bad value has not been looked at for says nothing new.
            if !good && (self.faults.is_none() || matches!(rule, Rule::Unevaluated { .. })) {
                break;
            }
            good &= self.rule(rule, value, marks.as_mut());
        }
        if good && let (Some(outer), Some(marks)) = (outer, marks) {
            outer.iter_mut().zip(marks).for_each(|(outer, mark)| *outer |= mark);
        }
        if enters {
            self.scope.pop();
        }
        self.depth -= 1;
        good
    }

    /// All that speak of the value alone share one fault, which says all that they want.
    fn assertions(&mut self, index: usize, value: &Value) -> bool {
        let mut failed = None;
        for assertion in &self.nodes[index].assertions {
            if !self.spend(assertion.cost(value)) {
                return false;
            }
            if !assertion.holds(value) {
                failed = Some(Kind::of(assertion));
                break;
            }
        }
        let Some(kind) = failed else { return true };
        self.fault(kind, |run| (describe(run.nodes, index), shorten(value)));
        false
    }

    fn rule(&mut self, rule: &Rule, value: &Value, mut marks: Option<&mut Marks>) -> bool {
        match (rule, value) {
            (Rule::Also(schema), _) => self.node(*schema, value, marks),
            (Rule::AnyOf(schemas), _) => self.alternatives(schemas, false, value, marks),
            (Rule::OneOf(schemas), _) => self.alternatives(schemas, true, value, marks),
            (Rule::Contains { schema, min, max }, Value::Array(items)) => {
                self.contains(*schema, *min..=*max, items, marks)
            }
            (Rule::DependentSchema { when, schema }, Value::Object(members)) => {
                !members.contains_key(when) || self.node(*schema, value, marks)
            }
            (Rule::Dynamic { fallback, targets }, _) => {
                let outermost = self.scope.iter().find_map(|resource| {
                    targets.iter().find(|target| target.0 == *resource).map(|target| target.1)
                });
                self.node(outermost.unwrap_or(*fallback), value, marks)
            }
            (Rule::If { condition, then, otherwise }, _) => {
                let holds = self.quietly(|run| run.node(*condition, value, marks.as_deref_mut()));
                let branch = if holds { then } else { otherwise };
                branch.is_none_or(|branch| self.node(branch, value, marks))
            }
            (Rule::Items { prefix, rest }, Value::Array(items)) => {
                self.items(prefix, *rest, items, marks)
            }
            (Rule::Members { named, patterns, rest }, Value::Object(members)) => {
                self.members(named, patterns, *rest, members, marks)
            }
            (Rule::Not { schema, text }, _) => {
                let matches = self.quietly(|run| run.node(*schema, value, None));
                if matches {
                    let expected = || format!("what does not match {text}");
                    self.fault(Kind::Other, |_| (expected(), shorten(value)));
                }
                !matches
            }
            (Rule::PropertyNames(schema), Value::Object(members)) => {
                self.property_names(*schema, members)
            }
            (Rule::Required { when, names }, Value::Object(members)) => {
                let is_due = when.as_ref().is_none_or(|when| members.contains_key(when));
                !is_due || self.required(when.as_deref(), names, members)
            }
            (Rule::Unevaluated { of_objects: false, schema }, Value::Array(items)) => {
                self.unevaluated_items(*schema, items, marks)
            }
            (Rule::Unevaluated { of_objects: true, schema }, Value::Object(members)) => {
                self.unevaluated_members(*schema, members, marks)
            }
            _ => true,
        }
    }

    /// `anyOf`, or `oneOf` if only one may match.
    fn alternatives(
        &mut self,
        schemas: &[usize],
        only_one: bool,
        value: &Value,
        mut marks: Option<&mut Marks>,
    ) -> bool {
        let mut matching = Vec::new();
        for (position, schema) in schemas.iter().enumerate() {
            if self.quietly(|run| run.node(*schema, value, marks.as_deref_mut())) {
                matching.push(position + 1);
                // For the marks all have to be asked.
                if (only_one && matching.len() == 2) || (!only_one && marks.is_none()) {
                    break;
                }
            }
        }
        match matching.as_slice() {
            [first, second, ..] if only_one => {
                let count = schemas.len();
                self.fault(Kind::Other, |_| {
                    let one = format!("a match for one of {count} alternatives");
                    (format!("{one}, not both {first} and {second}"), shorten(value))
                });
                false
            }
            [] => {
                if let Some(mut told) = self.faults.take() {
                    let faults = schemas.iter().map(|schema| {
                        self.faults = Some(Vec::new());
                        self.node(*schema, value, None);
                        self.faults.take().unwrap_or_default()
                    });
                    let faults = faults.collect();
                    told.extend(report::closest(faults, &self.path));
                    told.truncate(MAX_VIOLATIONS);
                    self.faults = Some(told);
                }
                false
            }
            _ => true,
        }
    }

    fn contains(
        &mut self,
        schema: usize,
        bounds: std::ops::RangeInclusive<u64>,
        items: &[Value],
        mut marks: Option<&mut Marks>,
    ) -> bool {
        let mut count = 0;
        for (index, item) in items.iter().enumerate() {
            if self.quietly(|run| run.node(schema, item, None)) {
                count += 1;
                if let Some(mark) = marks.as_mut().and_then(|marks| marks.get_mut(index)) {
                    *mark = true;
                }
            }
        }
        if bounds.contains(&count) {
            return true;
        }
        self.fault(Kind::Other, |run| {
            let (end, limit) = match bounds.end() {
                end if count > *end => ("most", end),
                _ => ("least", bounds.start()),
            };
            let what = describe(run.nodes, schema);
            (format!("at {end} {limit} item{} to be {what}", plural(*limit)), count.to_string())
        });
        false
    }

    fn items(
        &mut self,
        prefix: &[usize],
        rest: Option<usize>,
        items: &[Value],
        mut marks: Option<&mut Marks>,
    ) -> bool {
        let mut good = true;
        let schemas = prefix.iter().copied().map(Some).chain(std::iter::repeat(rest));
        for ((index, item), schema) in items.iter().enumerate().zip(schemas) {
            let Some(schema) = schema else { break };
            mark(&mut marks, index);
            good &= self.at(&index, |run| run.node(schema, item, None));
            if self.may_stop(good) {
                return false;
            }
        }
        good
    }

    fn members(
        &mut self,
        named: &BTreeMap<String, usize>,
        patterns: &[(Pattern, usize)],
        rest: Option<usize>,
        members: &Map<String, Value>,
        mut marks: Option<&mut Marks>,
    ) -> bool {
        let mut good = true;
        for (index, (name, value)) in members.iter().enumerate() {
            if !self.spend(1 + patterns.len() * (1 + pattern_cost(name))) {
                return false;
            }
            let by_name = named.get(name).copied();
            let by_pattern = patterns.iter().filter(|(pattern, _)| pattern.is_match(name));
            let mut is_known = false;
            for schema in by_name.into_iter().chain(by_pattern.map(|(_, schema)| *schema)) {
                is_known = true;
                good &= self.at(&name, |run| run.node(schema, value, None));
            }
            if let (false, Some(schema)) = (is_known, rest) {
                is_known = true;
                good &= self.at(&name, |run| run.member(schema, value, Some(named)));
            }
            if is_known {
                mark(&mut marks, index);
            }
            if self.may_stop(good) {
                return false;
            }
        }
        good
    }

    /// A member that no name or pattern speaks of.
    fn member(
        &mut self,
        schema: usize,
        value: &Value,
        known: Option<&BTreeMap<String, usize>>,
    ) -> bool {
        if !self.nodes[schema].is_never() {
            return self.node(schema, value, None);
        }
        self.fault(Kind::Other, |_| {
            let mut expected = "no member of this name".to_owned();
            if let Some(known) = known.filter(|known| !known.is_empty()) {
                let names = report::list(known.keys().cloned(), ", ");
                expected.push_str(&format!(" (known are {names})"));
            }
            (expected, shorten(value))
        });
        false
    }

    fn property_names(&mut self, schema: usize, members: &Map<String, Value>) -> bool {
        let mut good = true;
        for name in members.keys() {
            let value = Value::String(name.clone());
            if !self.quietly(|run| run.node(schema, &value, None)) {
                good = false;
                self.fault(Kind::Other, |run| {
                    let what = describe(run.nodes, schema);
                    (format!("names of members to be {what}"), shorten(&value))
                });
            }
            if self.may_stop(good) {
                return false;
            }
        }
        good
    }

    fn required(
        &mut self,
        when: Option<&str>,
        names: &[(String, Option<usize>)],
        members: &Map<String, Value>,
    ) -> bool {
        let mut good = true;
        for (name, schema) in names.iter().filter(|(name, _)| !members.contains_key(name)) {
            good = false;
            self.at(name, |run| {
                run.fault(Kind::Other, |run| {
                    let what = schema.map(|schema| describe(run.nodes, schema));
                    let what = what.as_deref().unwrap_or("a value");
                    let expected = match when {
                        Some(when) => format!("{what} beside `{when}`"),
                        None => format!("{what}, which is required"),
                    };
                    (expected, "nothing".to_owned())
                });
            });
        }
        good
    }

    fn unevaluated_items(
        &mut self,
        schema: usize,
        items: &[Value],
        marks: Option<&mut Marks>,
    ) -> bool {
        let mut good = true;
        for ((index, item), mark) in items.iter().enumerate().zip(marks.into_iter().flatten()) {
            if !std::mem::replace(mark, true) {
                good &= self.at(&index, |run| run.node(schema, item, None));
            }
            if self.may_stop(good) {
                return false;
            }
        }
        good
    }

    fn unevaluated_members(
        &mut self,
        schema: usize,
        members: &Map<String, Value>,
        marks: Option<&mut Marks>,
    ) -> bool {
        let mut good = true;
        for ((name, value), mark) in members.iter().zip(marks.into_iter().flatten()) {
            if !std::mem::replace(mark, true) {
                good &= self.at(&name, |run| run.member(schema, value, None));
            }
            if self.may_stop(good) {
                return false;
            }
        }
        good
    }

    /// Goes one token down for as long as `inner` takes.
    fn at<T>(&mut self, token: &dyn ToString, inner: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.path.len();
        if self.faults.is_some() {
            push_token(&mut self.path, &token.to_string());
        }
        let result = inner(self);
        self.path.truncate(length);
        result
    }

    /// Tells of no faults for as long as `inner` takes.
    fn quietly(&mut self, inner: impl FnOnce(&mut Self) -> bool) -> bool {
        let faults = self.faults.take();
        let result = inner(self);
        self.faults = faults;
        result
    }

    fn fault(&mut self, kind: Kind, words: impl FnOnce(&Self) -> (String, String)) {
        let has_room = self.faults.as_ref().is_some_and(|faults| faults.len() < MAX_VIOLATIONS);
        if has_room && self.spend(FAULT_STEPS) {
            let (expected, found) = words(self);
            let instance = shorten_text(&self.path, MAX_POINTER);
            let fault = Violation { instance, expected, found, kind };
            self.faults.get_or_insert_default().push(fault);
        }
    }

    /// Whether the rest of a bad value does not matter.
    fn may_stop(&self, good: bool) -> bool {
        let told = self.faults.as_ref().is_none_or(|faults| faults.len() == MAX_VIOLATIONS);
        self.steps == 0 || (!good && told)
    }

    fn spend(&mut self, steps: usize) -> bool {
        self.steps = self.steps.saturating_sub(steps);
        self.steps > 0
    }
}

fn mark(marks: &mut Option<&mut Marks>, index: usize) {
    if let Some(mark) = marks.as_mut().and_then(|marks| marks.get_mut(index)) {
        *mark = true;
    }
}

/// Enough for a body of the default limit and a schema of the usual kind.
const MAX_STEPS: usize = 4_000_000;
/// What it costs to put a fault in words.
const FAULT_STEPS: usize = 64;
/// Deepest nesting of nodes that are being applied; four or more for each level of a value.
const MAX_DEPTH: usize = 512;
