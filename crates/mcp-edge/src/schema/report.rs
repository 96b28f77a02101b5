//! The words of a fault: where, what was expected, what was found.

use std::{fmt, io};

use serde::Serialize;
use serde_json::Value;

use super::{Node, Rule, assertion::Assertion};

/// One fault of a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Violation {
    /// A JSON pointer.
    pub(crate) instance: String,
    pub(crate) expected: String,
    /// The value, shortened.
    pub(crate) found: String,
    pub(super) kind: Kind,
}

impl Violation {
    pub(super) fn not_json(fault: &serde_json::Error) -> Self {
        Self {
            instance: String::new(),
            expected: "JSON".to_owned(),
            found: fault.to_string(),
            kind: Kind::Other,
        }
    }
}

/// One line that a model can act on.
impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if self.instance.is_empty() { "" } else { ": " };
        let line =
            format!("{}{separator}expected {}, found {}", self.instance, self.expected, self.found);
        // Names of members may have line breaks.
        f.write_str(&line.replace(char::is_control, " "))
    }
}

/// What tells alternatives apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// The value is none of the allowed ones.
    Choice,
    Other,
    Type,
}

impl Kind {
    pub(super) const fn of(assertion: &Assertion) -> Self {
        match assertion {
            Assertion::Enum(_) => Self::Choice,
            Assertion::Types(_) => Self::Type,
            _ => Self::Other,
        }
    }
}

/// The faults to tell of when none of several alternatives fits the value at `instance`: those of
/// the one that comes closest, or one for all when they only want different types or values.
pub(super) fn closest(mut alternatives: Vec<Vec<Violation>>, instance: &str) -> Vec<Violation> {
    let count = alternatives.len();
    let is_here = |fault: &&Violation| fault.kind != Kind::Other && fault.instance == instance;
    if let Some(fault) = merge(&alternatives, |faults| match faults {
        [only] => Some(only).filter(is_here),
        _ => None,
    }) {
        return vec![fault];
    }
    // One for a value of another type is not meant.
    let is_type = |faults: &Vec<Violation>| {
        faults.iter().any(|fault| fault.kind == Kind::Type && fault.instance == instance)
    };
    if !alternatives.iter().all(is_type) {
        alternatives.retain(|faults| !is_type(faults));
    }
    // The member that tells alternatives apart has a value that none of them knows.
    let choice = |fault: &&Violation| fault.kind == Kind::Choice;
    if alternatives.len() > 1 {
        for at in alternatives[0].iter().filter(choice).map(|fault| &fault.instance) {
            let same = |fault: &&Violation| choice(fault) && fault.instance == *at;
            if let Some(fault) = merge(&alternatives, |faults| faults.iter().find(same)) {
                return vec![fault];
            }
        }
    }
    let is_only = alternatives.len() == 1;
    // A wrong value is often that of the member that tells alternatives apart.
    let distance = |faults: &Vec<Violation>| {
        (faults.iter().any(|fault| fault.kind == Kind::Choice), faults.len())
    };
    let mut faults = alternatives.into_iter().min_by_key(distance).unwrap_or_default();
    for fault in &mut faults {
        if !is_only && !fault.expected.ends_with(')') {
            fault.expected.push_str(&format!(" (closest of {count} alternatives)"));
        }
    }
    faults
}

/// One fault for those that `select` finds, if it finds one in each alternative.
fn merge<'a>(
    alternatives: &'a [Vec<Violation>],
    select: impl Fn(&'a [Violation]) -> Option<&'a Violation>,
) -> Option<Violation> {
    let faults: Vec<_> = alternatives.iter().map(|faults| select(faults)).collect::<Option<_>>()?;
    let expected = list(faults.iter().map(|fault| fault.expected.clone()), " or ");
    faults.first().map(|first| Violation { expected, ..(*first).clone() })
}

/// What a node wants, in a few words.
pub(super) fn describe(nodes: &[Node], index: usize) -> String {
    describe_within(nodes, index, MAX_HOPS)
}

fn describe_within(nodes: &[Node], index: usize, hops: usize) -> String {
    let node = &nodes[index];
    let (nouns, limits): (Vec<_>, Vec<_>) = node.assertions.iter().partition(|assertion| {
        matches!(assertion, Assertion::Enum(_) | Assertion::Never | Assertion::Types(_))
    });
    // Types come first, and say less than the values.
    let noun = nouns.last();
    let limits = list(limits.iter().map(ToString::to_string), " and ");
    match noun {
        Some(noun) if limits.is_empty() || !matches!(noun, Assertion::Types(_)) => noun.to_string(),
        Some(noun) => format!("{noun} {limits}"),
        None if !limits.is_empty() => format!("a value {limits}"),
        None if hops == 0 => "a value".to_owned(),
        None => {
            let inner = node.rules.iter().find_map(|rule| match rule {
                Rule::Also(index) => Some(describe_within(nodes, *index, hops - 1)),
                Rule::AnyOf(indices) | Rule::OneOf(indices) => {
                    let options = indices.iter().take(MAX_OPTIONS);
                    Some(list(
                        options.map(|index| describe_within(nodes, *index, hops - 1)),
                        " or ",
                    ))
                }
                _ => None,
            });
            inner.unwrap_or_else(|| "a value".to_owned())
        }
    }
}

/// Joins parts, each once, until they get long.
pub(super) fn list(parts: impl Iterator<Item = String>, separator: &str) -> String {
    let mut kept: Vec<String> = Vec::new();
    let mut length = 0;
    for part in parts {
        if length > MAX_LIST {
            kept.push("…".to_owned());
            break;
        }
        if !kept.contains(&part) {
            length += part.len();
            kept.push(part);
        }
    }
    kept.join(separator)
}

/// The JSON of a value, or its beginning.
pub(super) fn shorten(value: &Value) -> String {
    let mut start = Start(Vec::new());
    // It fails when there is more than enough.
    _ = value.serialize(&mut serde_json::Serializer::new(&mut start));
    shorten_text(&String::from_utf8_lossy(&start.0), MAX_FOUND)
}

pub(super) fn shorten_text(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most - 1).chain(['…']).collect(),
    }
}

/// Takes no more than a report can show.
struct Start(Vec<u8>);

impl io::Write for Start {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = (MAX_FOUND + 1) * 4 - self.0.len();
        self.0.extend(&bytes[..bytes.len().min(room)]);
        // Zero is an error to who writes all.
        Ok(bytes.len().min(room))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Most faults of one report.
pub(super) const MAX_VIOLATIONS: usize = 16;
/// Longest pointer of a report, in characters: the names in it are the caller's.
pub(super) const MAX_POINTER: usize = 256;
const MAX_FOUND: usize = 60;
/// After so many bytes a list ends.
const MAX_LIST: usize = 120;
/// How many references a description follows.
const MAX_HOPS: usize = 4;
/// How many alternatives of one node it names.
const MAX_OPTIONS: usize = 4;
