//! Keywords that look at a value alone.

use std::fmt;

use serde_json::{Number, Value};

use super::{
    number::{self, Divisor},
    pattern::Pattern,
    report,
};

#[derive(Debug)]
pub(super) enum Assertion {
    /// `enum`, and `const` as an `enum` of one.
    Enum(Vec<Value>),
    MultipleOf(Divisor),
    /// The schema `false`.
    Never,
    Pattern(Pattern),
    /// `minimum` and its like.
    Range {
        end: End,
        exclusive: bool,
        limit: Number,
    },
    /// `minLength`, `minItems`, `minProperties` and their like.
    Size {
        of: &'static Kind,
        end: End,
        limit: u64,
    },
    Types(Types),
    Unique,
}

impl Assertion {
    /// Whether it holds; values of types that it does not speak of are good.
    pub(super) fn holds(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Enum(values), _) => {
                values.iter().any(|allowed| number::order(allowed, value).is_eq())
            }
            (Self::MultipleOf(divisor), Value::Number(number)) => divisor.divides(number),
            (Self::Never, _) => false,
            (Self::Pattern(pattern), Value::String(text)) => pattern.is_match(text),
            (Self::Range { end, exclusive, limit }, Value::Number(number)) => {
                let order = number::order_numbers(number, limit);
                match end {
                    _ if order.is_eq() => !exclusive,
                    End::Least => order.is_gt(),
                    End::Most => order.is_lt(),
                }
            }
            (Self::Size { of, end, limit }, _) => {
                let size = (of.size)(value).map(|size| size as u64);
                size.is_none_or(|size| match end {
                    End::Least => size >= *limit,
                    End::Most => size <= *limit,
                })
            }
            (Self::Types(types), _) => types.contain(value),
            (Self::Unique, Value::Array(items)) => {
                // Sorted, equal items are neighbours.
                let mut items: Vec<_> = items.iter().collect();
                items.sort_unstable_by(|left, right| number::order(left, right));
                items.windows(2).all(|pair| number::order(pair[0], pair[1]).is_ne())
            }
            _ => true,
        }
    }

    /// What it costs, in steps of [`Run`](super::Run).
    pub(super) fn cost(&self, value: &Value) -> usize {
        match (self, value) {
            (Self::Enum(values), _) => values.len() / 4,
            (Self::Pattern(_), Value::String(text)) => pattern_cost(text),
            (Self::Size { .. }, Value::String(text)) => text.len() / 64,
            (Self::Unique, Value::Array(items)) => items.len() * 4,
            _ => 0,
        }
    }
}

/// What follows "a value" or "an integer" in a report. `Enum`, `Never` and `Types` are nouns.
impl fmt::Display for Assertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Enum(values) => {
                f.write_str(if values.len() == 1 { "" } else { "one of " })?;
                f.write_str(&report::list(values.iter().map(report::shorten), ", "))
            }
            Self::MultipleOf(divisor) => write!(f, "divisible by {}", divisor.text()),
            Self::Never => f.write_str("nothing here"),
            Self::Pattern(pattern) => write!(f, "matching `{}`", pattern.source()),
            Self::Range { end, exclusive, limit } => {
                let words = match (end, exclusive) {
                    (_, false) => end.words(),
                    (End::Least, true) => "above",
                    (End::Most, true) => "below",
                };
                write!(f, "{words} {limit}")
            }
            Self::Size { of, end, limit } => {
                write!(f, "{} {limit} {}{}", end.words(), of.unit, plural(*limit))
            }
            Self::Types(types) => types.fmt(f),
            Self::Unique => f.write_str("without equal items"),
        }
    }
}

pub(super) const fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// The engine takes so much longer for each byte than other keywords do.
pub(super) const fn pattern_cost(text: &str) -> usize {
    text.len() / 8
}

/// Which end of a range.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    Least,
    Most,
}

impl End {
    const fn words(self) -> &'static str {
        match self {
            Self::Least => "of at least",
            Self::Most => "of at most",
        }
    }
}

/// What has a size.
#[derive(Debug)]
pub(super) struct Kind {
    size: fn(&Value) -> Option<usize>,
    unit: &'static str,
}

pub(super) static STRING: Kind =
    Kind { size: |value| value.as_str().map(|text| text.chars().count()), unit: "character" };
pub(super) static ARRAY: Kind = Kind { size: |value| value.as_array().map(Vec::len), unit: "item" };
pub(super) static OBJECT: Kind =
    Kind { size: |value| value.as_object().map(serde_json::Map::len), unit: "member" };

/// A set of types: one bit for each of [`TYPES`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Types(u8);

impl Types {
    /// None for a name that no type has.
    pub(super) fn with(self, name: &str) -> Option<Self> {
        let index = TYPES.iter().position(|(known, _)| *known == name)?;
        Some(Self(self.0 | 1 << index))
    }

    fn contain(self, value: &Value) -> bool {
        let has = |index: u8| self.0 & 1 << index != 0;
        match value {
            Value::Null => has(6),
            Value::Bool(_) => has(5),
            Value::Number(number) => has(1) || (has(0) && number::is_integer(number)),
            Value::String(_) => has(2),
            Value::Array(_) => has(3),
            Value::Object(_) => has(4),
        }
    }
}

impl fmt::Display for Types {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = TYPES.iter().enumerate().filter(|(index, _)| self.0 & 1 << index != 0);
        f.write_str(&report::list(known.map(|(_, (_, words))| (*words).to_owned()), " or "))
    }
}

const TYPES: [(&str, &str); 7] = [
    ("integer", "an integer"),
    ("number", "a number"),
    ("string", "a string"),
    ("array", "an array"),
    ("object", "an object"),
    ("boolean", "a boolean"),
    ("null", "null"),
];
