//! Exact arithmetic and order of JSON values.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

use crate::canonical::Decimal;

/// Orders all values, so that numbers of one value are equal however they are written, and objects
/// whatever the order of their members.
pub(super) fn order(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Number(left), Value::Number(right)) => order_numbers(left, right),
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Array(left), Value::Array(right)) => {
            left.len().cmp(&right.len()).then_with(|| first_difference(left.iter().zip(right)))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len().cmp(&right.len()).then_with(|| order_members(left, right))
        }
        (left, right) => rank(left).cmp(&rank(right)),
    }
}

fn first_difference<'a>(mut pairs: impl Iterator<Item = (&'a Value, &'a Value)>) -> Ordering {
    let difference = pairs.find_map(|(left, right)| Some(order(left, right)).filter(|o| o.is_ne()));
    difference.unwrap_or(Ordering::Equal)
}

/// The first name in the alphabet decides that has another value, or none, on one side.
fn order_members(left: &Map<String, Value>, right: &Map<String, Value>) -> Ordering {
    let names = left.keys().chain(right.keys().filter(|name| !left.contains_key(*name)));
    let differences = names.filter_map(|name| {
        let order = match (left.get(name), right.get(name)) {
            (Some(left), Some(right)) => order(left, right),
            (left, right) => left.is_some().cmp(&right.is_some()),
        };
        order.is_ne().then_some((name, order))
    });
    differences.min_by_key(|(name, _)| *name).map_or(Ordering::Equal, |(_, order)| order)
}

const fn rank(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    }
}

/// Orders by exact decimal value.
pub(super) fn order_numbers(left: &Number, right: &Number) -> Ordering {
    if let (Some(left), Some(right)) = (left.as_i64(), right.as_i64()) {
        return left.cmp(&right);
    }
    let (left, right) = (left.to_string(), right.to_string());
    match (Decimal::parse(&left), Decimal::parse(&right)) {
        (Some(left), Some(right)) => {
            // Zero is positive and has no digits.
            let sign = right.negative.cmp(&left.negative);
            let magnitude = order_magnitudes(&left, &right);
            sign.then(if left.negative { magnitude.reverse() } else { magnitude })
        }
        // An exponent of sixteen digits: no number that anything can be done with.
        _ => left.cmp(&right),
    }
}

fn order_magnitudes(left: &Decimal<'_>, right: &Decimal<'_>) -> Ordering {
    let top = |number: &Decimal<'_>| number.exponent.saturating_add_unsigned(number.len() as u64);
    match (left.len(), right.len()) {
        (0, 0) => Ordering::Equal,
        (0, _) => Ordering::Less,
        (_, 0) => Ordering::Greater,
        _ => top(left).cmp(&top(right)).then_with(|| left.digits().cmp(right.digits())),
    }
}

pub(super) fn is_integer(number: &Number) -> bool {
    number.is_i64()
        || number.is_u64()
        || Decimal::parse(&number.to_string()).is_some_and(|number| number.is_integer())
}

/// Reads a bound of a size: a non-negative integer, however it is written. More than fits is as
/// good as the most that fits.
pub(super) fn size(number: &Number) -> Option<u64> {
    let text = number.to_string();
    let decimal = Decimal::parse(&text)?;
    (decimal.is_integer() && !decimal.negative).then_some(())?;
    let zeros = usize::try_from(decimal.exponent).unwrap_or(usize::MAX).min(20);
    let digits = decimal.digits().chain(std::iter::repeat_n(b'0', zeros));
    let value = digits.fold(0, |value: u64, digit| {
        value.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
    });
    Some(value)
}

/// The number of a `multipleOf`.
#[derive(Debug)]
pub(super) struct Divisor {
    digits: u64,
    exponent: i64,
    text: String,
}

impl Divisor {
    /// None for what is not above zero, or has more digits than any float shows.
    pub(super) fn new(number: &Number) -> Option<Self> {
        let text = number.to_string();
        let decimal = Decimal::parse(&text).filter(|number| !number.negative)?;
        let digits = decimal.digits().try_fold(0_u64, |value, digit| {
            value.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
        })?;
        let exponent = decimal.exponent;
        (digits > 0).then_some(Self { digits, exponent, text })
    }

    pub(super) fn divides(&self, number: &Number) -> bool {
        let text = number.to_string();
        let Some(number) = Decimal::parse(&text) else { return false };
        if number.len() == 0 {
            return true;
        }
        // The last digit of a decimal is not zero: a factor ten more than it has cannot divide it.
        let Ok(zeros) = u64::try_from(number.exponent.saturating_sub(self.exponent)) else {
            return false;
        };
        let modulus = u128::from(self.digits);
        let rest = number.digits().fold(0, |rest, digit| {
            // Below 2^64 * 10 + 10.
            (rest * 10 + u128::from(digit - b'0')) % modulus
        });
        (rest * power_of_ten(zeros, modulus)).is_multiple_of(modulus)
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

/// `10^exponent % modulus` for a modulus below 2^64.
fn power_of_ten(mut exponent: u64, modulus: u128) -> u128 {
    let (mut power, mut base) = (1 % modulus, 10 % modulus);
    while exponent > 0 {
        if exponent & 1 == 1 {
            power = power * base % modulus;
        }
        base = base * base % modulus;
        exponent >>= 1;
    }
    power
}
