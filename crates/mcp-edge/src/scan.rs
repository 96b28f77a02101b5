//! One pass over JSON text that takes only what is wanted and copies nothing.
//!
//! Reading the envelope of a request is what every request pays for, and most of it is skipped:
//! this pass takes two thirds of the instructions of a general parser. It is strict, and it may
//! give up: `None` sends the body to the slow path, which reads it with `serde_json` and finds out
//! what is wrong, if anything is. So it must never accept what `serde_json` refuses, which a test
//! compares; values that are used are parsed by `serde_json` in any case.

use std::borrow::Cow;

/// Deeper nesting than there are bits for is left to the slow path.
const MAX_DEPTH: usize = 64;

/// A position in JSON text.
#[derive(Debug)]
pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    /// How many more objects may be entered.
    depth: usize,
}

impl<'a> Scanner<'a> {
    /// Begins at the start of a text that is nested `depth` deep at most.
    pub(crate) const fn new(text: &'a str, depth: usize) -> Self {
        Self { text, at: 0, depth }
    }

    /// Reads an object; `member` is called with each key and reads its value.
    pub(crate) fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, &'a [u8]) -> Option<()>,
    ) -> Option<()> {
        self.expect(b'{')?;
        self.depth = self.depth.checked_sub(1)?;
        if self.next_is(b'}') {
            self.depth += 1;
            return Some(());
        }
        loop {
            let key = self.key()?;
            member(self, key)?;
            if self.next_is(b'}') {
                self.depth += 1;
                return Some(());
            }
            self.expect(b',')?;
        }
    }

    /// Reads a string, borrowed where it has no escapes.
    pub(crate) fn string(&mut self) -> Option<Cow<'a, str>> {
        self.white();
        let start = self.at;
        let escaped = self.skip_string()?;
        if escaped {
            return serde_json::from_str(&self.text[start..self.at]).ok().map(Cow::Owned);
        }
        Some(Cow::Borrowed(&self.text[start + 1..self.at - 1]))
    }

    /// Skips a value of any kind, and returns its text.
    pub(crate) fn value(&mut self) -> Option<&'a str> {
        self.white();
        let start = self.at;
        // Whether each open bracket is a brace; the lowest bit is the innermost.
        let (mut braces, mut depth) = (0_u64, 0);
        let limit = self.depth.min(MAX_DEPTH);
        loop {
            match self.peek()? {
                open @ (b'{' | b'[') => {
                    let brace = open == b'{';
                    if depth == limit {
                        return None;
                    }
                    self.at += 1;
                    self.white();
                    if self.peek()? == if brace { b'}' } else { b']' } {
                        self.at += 1;
                    } else {
                        braces = braces << 1 | u64::from(brace);
                        depth += 1;
                        if brace {
                            self.key()?;
                        }
                        self.white();
                        continue;
                    }
                }
                b'"' => drop(self.skip_string()?),
                b't' => self.literal("true")?,
                b'f' => self.literal("false")?,
                b'n' => self.literal("null")?,
                _ => self.number()?,
            }
            // A value has ended: close what ends with it.
            loop {
                if depth == 0 {
                    return Some(&self.text[start..self.at]);
                }
                self.white();
                let brace = braces & 1 == 1;
                match (self.peek()?, brace) {
                    (b'}', true) | (b']', false) => {
                        self.at += 1;
                        braces >>= 1;
                        depth -= 1;
                    }
                    (b',', true) => {
                        self.at += 1;
                        self.key()?;
                        self.white();
                        break;
                    }
                    (b',', false) => {
                        self.at += 1;
                        self.white();
                        break;
                    }
                    _ => return None,
                }
            }
        }
    }

    /// Whether nothing but whitespace is left.
    pub(crate) fn end(&mut self) -> Option<()> {
        self.white();
        (self.at == self.text.len()).then_some(())
    }

    /// A key without escapes, and the colon after it.
    fn key(&mut self) -> Option<&'a [u8]> {
        self.white();
        let start = self.at + 1;
        if self.skip_string()? {
            return None;
        }
        let key = self.text.as_bytes().get(start..self.at - 1)?;
        self.expect(b':')?;
        Some(key)
    }

    /// Skips a string, and says whether it has escapes.
    fn skip_string(&mut self) -> Option<bool> {
        let bytes = self.text.as_bytes();
        let [b'"', rest @ ..] = bytes.get(self.at..)? else {
            return None;
        };
        let (mut rest, mut escaped) = (rest, false);
        loop {
            // Eight at a time, while none of them ends the string or needs a look.
            while let Some((chunk, after)) = rest.split_first_chunk() {
                let special = special(u64::from_le_bytes(*chunk));
                if special != 0 {
                    rest = rest.get(special.trailing_zeros() as usize / 8..)?;
                    break;
                }
                rest = after;
            }
            rest = match rest {
                [b'"', rest @ ..] => {
                    self.at = bytes.len() - rest.len();
                    return Some(escaped);
                }
                [b'\\', b'u', a, b, c, d, rest @ ..]
                    if [a, b, c, d].iter().all(|digit| digit.is_ascii_hexdigit()) =>
                {
                    escaped = true;
                    rest
                }
                [b'\\', b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', rest @ ..] => {
                    escaped = true;
                    rest
                }
                [b'\\' | 0..0x20, ..] | [] => return None,
                [_, rest @ ..] => rest,
            };
        }
    }

    fn number(&mut self) -> Option<()> {
        let bytes = self.text.as_bytes();
        let digits = |mut at: usize| {
            let start = at;
            while bytes.get(at).is_some_and(u8::is_ascii_digit) {
                at += 1;
            }
            (at > start).then_some(at)
        };
        let mut at = self.at + usize::from(bytes.get(self.at) == Some(&b'-'));
        at = if bytes.get(at) == Some(&b'0') { at + 1 } else { digits(at)? };
        if bytes.get(at) == Some(&b'.') {
            at = digits(at + 1)?;
        }
        if matches!(bytes.get(at), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
            at = digits(at + 1 + sign)?;
        }
        self.at = at;
        Some(())
    }

    fn literal(&mut self, literal: &str) -> Option<()> {
        let end = self.at + literal.len();
        if self.text.as_bytes().get(self.at..end)? != literal.as_bytes() {
            return None;
        }
        self.at = end;
        Some(())
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.next_is(byte).then_some(())
    }

    fn next_is(&mut self, byte: u8) -> bool {
        if self.peek() != Some(byte) {
            self.white();
            if self.peek() != Some(byte) {
                return false;
            }
        }
        self.at += 1;
        true
    }

    fn white(&mut self) {
        while let Some(byte) = self.peek()
            && byte <= b' '
            && matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
        {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}

/// Marks, by the highest bit of each byte, quotes, backslashes and control characters; the lowest
/// mark is exact.
const fn special(chunk: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    const fn zeros(chunk: u64) -> u64 {
        chunk.wrapping_sub(ONES) & !chunk
    }
    let control = chunk.wrapping_sub(ONES * 0x20) & !chunk;
    let quote = zeros(chunk ^ (ONES * b'"' as u64));
    let backslash = zeros(chunk ^ (ONES * b'\\' as u64));
    (control | quote | backslash) & HIGH
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(text: &str) -> bool {
        let mut scanner = Scanner::new(text, MAX_DEPTH);
        scanner.value().is_some() && scanner.end().is_some()
    }

    fn sound(text: &str) -> bool {
        serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
    }

    #[test]
    fn the_text_of_a_value_is_returned_as_it_was_written() {
        let mut scanner = Scanner::new(r#" { "a" : [1, {"b":"}"}] , "c":-1.5e3} "#, 3);
        assert_eq!(scanner.value(), Some(r#"{ "a" : [1, {"b":"}"}] , "c":-1.5e3}"#));
        assert!(scanner.end().is_some());
    }

    #[test]
    fn members_are_handed_out_in_order() {
        let mut seen = Vec::new();
        let mut scanner = Scanner::new(r#"{"a":"x\n","b": {} ,"c":null}"#, 2);
        scanner.object(|scanner, key| {
            seen.push((str::from_utf8(key).unwrap(), scanner.value()?));
            Some(())
        });
        assert_eq!(seen, [("a", r#""x\n""#), ("b", "{}"), ("c", "null")]);
    }

    #[test]
    fn strings_are_borrowed_unless_they_have_escapes() {
        let read = |text| Scanner::new(text, 0).string();
        assert!(matches!(read(r#" "plain, and longer than eight" "#), Some(Cow::Borrowed(_))));
        assert_eq!(read(r#""a\u00e9\"""#).as_deref(), Some("aé\""));
        assert_eq!(read(r#""\ud800""#), None, "a lone surrogate is no text");
        assert_eq!(read("7"), None);
    }

    #[test]
    fn deep_nesting_is_left_to_the_slow_path() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(accepts(&nested(MAX_DEPTH)));
        assert!(!accepts(&nested(MAX_DEPTH + 1)));
        assert!(!accepts(&"[".repeat(1 << 20)));
    }

    /// Every text of up to four pieces, and every change of one byte to real bodies.
    #[test]
    fn nothing_is_accepted_that_serde_json_refuses() {
        let pieces = [
            "",
            " ",
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"",
            "\\",
            "\"a\"",
            "\"\\u00\"",
            "0",
            "01",
            "-",
            "1.",
            ".5",
            "1e",
            "1E+2",
            "true",
            "tru",
            "null",
            "\n",
            "\u{1}",
            "é",
        ];
        let mut texts = vec![String::new()];
        for _ in 0..4 {
            texts =
                texts.iter().flat_map(|t| pieces.iter().map(move |p| format!("{t}{p}"))).collect();
        }
        let bodies = [
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":[1,-2.5e+3,"\ud83d\ude00",{}]}}"#,
            r#"[true,false,null,"long enough for eight at a time",{"k":"\\\"/\b\f\n\r\t"}]"#,
        ];
        for body in bodies {
            for at in 0..body.len() {
                for byte in (0..0x80_u8).step_by(3).chain(*b"\"\\{}[],:") {
                    let mut changed = body.as_bytes().to_vec();
                    changed[at] = byte;
                    texts.extend(String::from_utf8(changed));
                    texts.push(body[..at].to_owned());
                }
            }
        }
        let mut accepted = 0;
        for text in &texts {
            if accepts(text) {
                accepted += 1;
                assert!(sound(text), "{text:?}");
            }
        }
        assert!(accepted > 1000 && texts.len() > 300_000, "{accepted} of {}", texts.len());
    }
}
