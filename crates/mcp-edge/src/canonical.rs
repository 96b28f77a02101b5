//! Digests that do not depend on how JSON was written.
//!
//! A client or a gateway may write the same arguments again with other whitespace, key order,
//! escapes or spellings of a number. What is bound to arguments is therefore bound to a canonical
//! form of them:
//!
//! - An object is its members sorted by the bytes of their keys; of two members with one key the
//!   last counts, as in `serde_json`.
//! - A string is its content.
//! - A number is its exact decimal value: `1`, `1.0`, `1e0` and `10e-1` are one number, `-0` is
//!   `0`. Nothing is rounded to a float, so integers of any size stay apart, and so do fractions
//!   that would meet in one `f64`: a handler that reads them exactly cannot be given another value
//!   under the same digest. The price is that whoever rounds a number on the way changes the
//!   digest, as it should.
//! - Absent arguments are `{}`.
//!
//! The form has no text: every item goes into the hash with its kind and its length, so no two
//! values can run into each other.

use std::borrow::Cow;

use ring::digest::{Context, SHA256};
use serde::de::Error as _;
use serde_json::{Error, value::RawValue};

/// Returns the SHA-256 of the canonical form of `raw`, or of `{}` when there is none.
///
/// # Errors
/// When `raw` is not JSON, holds a string that is no Unicode text (a lone surrogate),
/// nests deeper than `serde_json` reads, or has an exponent beyond any number type.
pub(crate) fn digest_json(raw: Option<&str>) -> Result<[u8; 32], Error> {
    let raw = raw.unwrap_or("{}");
    // Checks the syntax, so that the reader below only needs to find the pieces.
    let valid: &RawValue = serde_json::from_str(raw)?;
    let tree = Reader { rest: valid.get() }.value(0)?;
    let mut context = Context::new(&SHA256);
    write(&tree, &mut context);
    Ok(finish(context))
}

/// Returns the SHA-256 of `parts`, each with its length, so that the borders between them count.
pub(crate) fn digest(parts: &[&[u8]]) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    for part in parts {
        write_bytes(part, &mut context);
    }
    finish(context)
}

/// The exact value of a JSON number, in the one form that has no superfluous zeros.
///
/// The value is the digits of `whole` then `fraction`, read as one integer, times ten to the power
/// of `exponent`. Neither the first nor the last digit is 0; zero has no digits at all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decimal<'a> {
    pub(crate) negative: bool,
    whole: &'a str,
    fraction: &'a str,
    pub(crate) exponent: i64,
}

impl<'a> Decimal<'a> {
    /// Reads a number as JSON writes it; anything else, or an exponent beyond reason, is none.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) if is_digits(fraction) => (whole, fraction),
            Some(_) => return None,
            None => (mantissa, ""),
        };
        let is_whole = is_digits(whole) && (whole.len() == 1 || !whole.starts_with('0'));
        is_whole.then(|| Self::normal(negative, whole, fraction, exponent))
    }

    fn normal(negative: bool, whole: &'a str, fraction: &'a str, exponent: i64) -> Self {
        let fraction = fraction.trim_end_matches('0');
        let whole = whole.trim_start_matches('0');
        if fraction.is_empty() {
            let digits = whole.trim_end_matches('0');
            if digits.is_empty() {
                return Self { negative: false, whole: "", fraction: "", exponent: 0 };
            }
            let exponent = exponent.saturating_add_unsigned((whole.len() - digits.len()) as u64);
            return Self { negative, whole: digits, fraction: "", exponent };
        }
        let exponent = exponent.saturating_sub_unsigned(fraction.len() as u64);
        let fraction = if whole.is_empty() { fraction.trim_start_matches('0') } else { fraction };
        Self { negative, whole, fraction, exponent }
    }

    /// Whether the value is an integer.
    pub(crate) const fn is_integer(&self) -> bool {
        self.exponent >= 0
    }

    /// Whether the value is an integer that every reader of JSON keeps exactly: within ±(2^53 - 1).
    pub(crate) fn is_safe_integer(&self) -> bool {
        // 2^53 - 1 has 16 digits; what fits them fits a u64.
        let zeros = usize::try_from(self.exponent).unwrap_or(usize::MAX);
        if self.len().saturating_add(zeros) > 16 {
            return false;
        }
        let digits = self.digits().chain(std::iter::repeat_n(b'0', zeros));
        digits.fold(0, |value: u64, digit| value * 10 + u64::from(digit - b'0')) < 1 << 53
    }

    pub(crate) fn digits(&self) -> impl Iterator<Item = u8> {
        self.whole.bytes().chain(self.fraction.bytes())
    }

    pub(crate) const fn len(&self) -> usize {
        self.whole.len() + self.fraction.len()
    }
}

impl PartialEq for Decimal<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.negative == other.negative
            && self.exponent == other.exponent
            && self.len() == other.len()
            && self.digits().eq(other.digits())
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Exponents are bounded so that arithmetic on them, with the length of any text, cannot overflow.
fn parse_exponent(text: &str) -> Option<i64> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let significant = digits.trim_start_matches('0');
    (is_digits(digits) && significant.len() <= 15).then_some(())?;
    let value: i64 = if significant.is_empty() { 0 } else { significant.parse().ok()? };
    Some(if negative { -value } else { value })
}

/// A value in its canonical form; numbers excepted, its text is borrowed wherever it has no
/// escapes.
enum Tree<'a> {
    Literal(u8),
    Number(Decimal<'a>),
    String(Cow<'a, str>),
    Array(Vec<Self>),
    /// Sorted, without duplicates.
    Object(Vec<(Cow<'a, str>, Self)>),
}

/// Takes apart JSON whose syntax is known to be right.
///
/// It exists because `serde_json` reads numbers beyond 64 bits as floats, and because cargo
/// features that any crate of a build may turn on change how it presents numbers and orders keys.
struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: u8) -> Result<Tree<'a>, Error> {
        if depth > MAX_DEPTH {
            return Err(Error::custom("recursion limit exceeded"));
        }
        match self.peek()? {
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'"' => self.string().map(Tree::String),
            literal @ (b't' | b'f' | b'n') => {
                let length = if literal == b'f' { "false".len() } else { "true".len() };
                self.take(length)?;
                Ok(Tree::Literal(literal))
            }
            _ => {
                let end = self.rest.find(|c: char| {
                    !c.is_ascii_digit() && !matches!(c, '+' | '-' | '.' | 'e' | 'E')
                });
                let text = self.take(end.unwrap_or(self.rest.len()))?;
                Decimal::parse(text)
                    .map(Tree::Number)
                    .ok_or_else(|| Error::custom("number out of range"))
            }
        }
    }

    fn object(&mut self, depth: u8) -> Result<Tree<'a>, Error> {
        let mut members = Vec::new();
        self.take(1)?;
        while self.peek()? != b'}' {
            let key = self.string()?;
            self.skip(b':')?;
            members.push((key, self.value(depth + 1)?));
            if self.peek()? == b',' {
                self.take(1)?;
            }
        }
        self.take(1)?;
        // Reversed and sorted stably, the last of several equal keys comes first and stays.
        members.reverse();
        members.sort_by(|(left, _), (right, _)| left.as_bytes().cmp(right.as_bytes()));
        members.dedup_by(|(later, _), (kept, _)| later == kept);
        Ok(Tree::Object(members))
    }

    fn array(&mut self, depth: u8) -> Result<Tree<'a>, Error> {
        let mut items = Vec::new();
        self.take(1)?;
        while self.peek()? != b']' {
            items.push(self.value(depth + 1)?);
            if self.peek()? == b',' {
                self.take(1)?;
            }
        }
        self.take(1)?;
        Ok(Tree::Array(items))
    }

    fn string(&mut self) -> Result<Cow<'a, str>, Error> {
        self.peek()?;
        let mut escaped = false;
        let mut position = 1;
        loop {
            let rest = self.rest.as_bytes().get(position..).unwrap_or_default();
            let Some(step) = rest.iter().position(|byte| matches!(byte, b'"' | b'\\')) else {
                return Err(syntax());
            };
            if rest[step] == b'"' {
                position += step;
                break;
            }
            escaped = true;
            position += step + 2;
        }
        let quoted = self.take(position + 1)?;
        if !escaped {
            return Ok(Cow::Borrowed(quoted.trim_matches('"')));
        }
        serde_json::from_str(quoted).map(Cow::Owned)
    }

    /// The first byte of the next token.
    fn peek(&mut self) -> Result<u8, Error> {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
        self.rest.bytes().next().ok_or_else(syntax)
    }

    fn skip(&mut self, token: u8) -> Result<(), Error> {
        if self.peek()? != token {
            return Err(syntax());
        }
        self.take(1).map(drop)
    }

    fn take(&mut self, length: usize) -> Result<&'a str, Error> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or_else(syntax)?;
        self.rest = rest;
        Ok(taken)
    }
}

/// Out of reach as long as `serde_json` has read the text before.
fn syntax() -> Error {
    Error::custom("invalid JSON")
}

fn write(tree: &Tree<'_>, context: &mut Context) {
    match tree {
        Tree::Literal(literal) => context.update(&[*literal]),
        Tree::Number(number) => {
            context.update(if number.negative { b"-" } else { b"+" });
            context.update(&number.exponent.to_be_bytes());
            write_length(number.len(), context);
            context.update(number.whole.as_bytes());
            context.update(number.fraction.as_bytes());
        }
        Tree::String(text) => {
            context.update(b"\"");
            write_bytes(text.as_bytes(), context);
        }
        Tree::Array(items) => {
            context.update(b"[");
            write_length(items.len(), context);
            for item in items {
                write(item, context);
            }
        }
        Tree::Object(members) => {
            context.update(b"{");
            write_length(members.len(), context);
            for (key, value) in members {
                write_bytes(key.as_bytes(), context);
                write(value, context);
            }
        }
    }
}

fn write_bytes(bytes: &[u8], context: &mut Context) {
    write_length(bytes.len(), context);
    context.update(bytes);
}

fn write_length(length: usize, context: &mut Context) {
    context.update(&(length as u64).to_be_bytes());
}

fn finish(context: Context) -> [u8; 32] {
    let mut out = [0; 32];
    out.copy_from_slice(context.finish().as_ref());
    out
}

/// As deep as `serde_json` reads.
const MAX_DEPTH: u8 = 128;

#[cfg(test)]
mod tests {
    use super::*;

    fn same(left: &str, right: &str) {
        assert_eq!(
            digest_json(Some(left)).unwrap(),
            digest_json(Some(right)).unwrap(),
            "{left} and {right}"
        );
    }

    fn differ(left: &str, right: &str) {
        assert_ne!(
            digest_json(Some(left)).unwrap(),
            digest_json(Some(right)).unwrap(),
            "{left} and {right}"
        );
    }

    #[test]
    fn absent_is_the_empty_object() {
        assert_eq!(digest_json(None).unwrap(), digest_json(Some(" { } ")).unwrap());
        differ("{}", "null");
        differ("{}", "[]");
    }

    #[test]
    fn whitespace_and_key_order_do_not_count() {
        same(
            r#"{"b":[1,true,null],"a":{"y":1,"x":"z"}}"#,
            " {\n\"a\" :\t{\"x\":\"z\",\r\"y\":1} , \"b\":[ 1 ,true, null ]} ",
        );
        same(r#"{"é":1,"z":2,"Z":3,"":4}"#, r#"{"":4,"Z":3,"z":2,"é":1}"#);
        differ("[1,2]", "[2,1]");
    }

    #[test]
    fn of_two_members_with_one_key_the_last_counts() {
        same(r#"{"a":1,"b":0,"a":2,"a":3}"#, r#"{"b":0,"a":3}"#);
        same(r#"{"a":{"deep":1},"\u0061":2}"#, r#"{"a":2}"#);
        differ(r#"{"a":1,"a":2}"#, r#"{"a":1}"#);
    }

    #[test]
    fn strings_count_by_content() {
        same(r#""\u0061\/\u00e9\ud83d\ude00\n\"\\""#, "\"a/é😀\\u000a\\u0022\\u005c\"");
        same(r#"{"k":1}"#, r#"{"\u006b":1}"#);
        differ(r#""a""#, r#""A""#);
        differ(r#""""#, "{}");
        differ(r#""1""#, "1");
        differ(r#""\"""#, r#""\"\"""#);
        differ(r#""\\""#, r#""\\\\""#);
    }

    #[test]
    fn numbers_count_by_exact_value() {
        for one in ["1.0", "1e0", "1E+00", "10e-1", "0.1e1", "0.001e3", "1.000"] {
            same("1", one);
        }
        for zero in ["-0", "0.0", "-0.00e5", "0e999"] {
            same("0", zero);
        }
        same("1200", "1.2e3");
        same("1e21", "1000000000000000000000");
        same("-0.0625", "-625e-4");
        same("100.50", "1005e-1");
        for (left, right) in [
            ("1", "-1"),
            ("1", "10"),
            ("1", "0.1"),
            ("12", "1.2"),
            ("101", "11"),
            ("1", "true"),
            ("0", "null"),
            ("9007199254740992", "9007199254740993"),
            ("18446744073709551616", "18446744073709551617"),
            ("9007199254740992.0", "9007199254740993.0"),
            ("0.1", "0.10000000000000000001"),
            ("1e400", "2e400"),
        ] {
            differ(left, right);
        }
    }

    #[test]
    fn structure_cannot_be_imitated() {
        for (left, right) in [
            (r#"["a","b"]"#, r#"["a\",\"b"]"#),
            (r#"[["a"],"b"]"#, r#"["a",["b"]]"#),
            ("[[],[]]", "[[[]]]"),
            (r#"{"a":{"b":1}}"#, r#"{"a":{},"b":1}"#),
            (r#"{"ab":"c"}"#, r#"{"a":"bc"}"#),
            ("[1,1]", "[11]"),
            ("[false]", "[null]"),
        ] {
            differ(left, right);
        }
    }

    #[test]
    fn what_no_handler_could_read_is_an_error() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        let lone = r#"["\ud800"]"#;
        let huge = "1e9999999999999999999999";
        for bad in [
            "",
            "{",
            "[1,]",
            "{\"a\"}",
            "01",
            "1.",
            "+1",
            "NaN",
            "'a'",
            "1 2",
            lone,
            huge,
            deep.as_str(),
        ] {
            assert!(digest_json(Some(bad)).is_err(), "{}", &bad[..bad.len().min(40)]);
        }
        assert!(digest_json(Some(&("[".repeat(100) + &"]".repeat(100)))).is_ok());
    }

    #[test]
    fn the_digest_is_stable() {
        let hex =
            |digest: [u8; 32]| digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(
            hex(digest_json(Some(r#"{"a":[1,"b",null,-0.5]}"#)).unwrap()),
            "73350e80c78152a14a26b770969e7a924f683cc7f1b86620eb5e79b7c4648863"
        );
    }

    #[test]
    fn borders_between_parts_count() {
        assert_eq!(digest(&[b"a", b"b"]), digest(&[b"a", b"b"]));
        assert_ne!(digest(&[b"ab"]), digest(&[b"a", b"b"]));
        assert_ne!(digest(&[b"a", b""]), digest(&[b"a"]));
        assert_ne!(digest(&[]), digest(&[b""]));
    }

    #[test]
    fn decimals_follow_the_json_grammar() {
        for good in ["0", "-1", "42.0", "4.2e1", "1E-3"] {
            assert!(Decimal::parse(good).is_some(), "{good}");
        }
        for bad in [
            "", "-", "+1", "01", "1.", ".5", "1e", "1e+", "0x1", " 1", "1 ", "1_0", "--1", "1.2.3",
            "é",
        ] {
            assert!(Decimal::parse(bad).is_none(), "{bad}");
        }
        assert!(Decimal::parse("4.2e1").unwrap().is_integer());
        assert!(!Decimal::parse("4.25e1").unwrap().is_integer());
    }

    #[test]
    fn integers_are_safe_below_two_to_the_53() {
        for safe in
            ["0", "-1", "1e15", "9007199254740991", "-9007199254740991.0", "900719925474099e1"]
        {
            assert!(Decimal::parse(safe).unwrap().is_safe_integer(), "{safe}");
        }
        for unsafe_ in
            ["9007199254740992", "-9007199254740992", "1e16", "1e999999", "0.5", "1e-999999"]
        {
            assert!(!Decimal::parse(unsafe_).unwrap().is_safe_integer(), "{unsafe_}");
        }
    }
}
