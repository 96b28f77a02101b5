//! Regular expressions: ECMA-262 as schemas write it, run by a linear-time engine (SCHEMA-11).

use std::{iter::Peekable, str::Chars};

use regex_lite::Regex;

/// A compiled `pattern`.
#[derive(Debug)]
pub(super) struct Pattern {
    regex: Regex,
    source: String,
}

impl Pattern {
    /// # Errors
    /// Says what is wrong or not supported.
    pub(super) fn new(source: &str) -> Result<Self, String> {
        let compiled =
            translate(source).and_then(|text| Regex::new(&text).map_err(|fault| fault.to_string()));
        match compiled {
            Ok(regex) => Ok(Self { regex, source: source.to_owned() }),
            Err(fault) => Err(format!("the pattern `{source}` is not supported: {fault}")),
        }
    }

    pub(super) fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    pub(super) fn source(&self) -> &str {
        &self.source
    }
}

/// Rewrites what the two dialects read differently, and refuses what only the engine knows.
fn translate(source: &str) -> Result<String, String> {
    let mut out = String::with_capacity(source.len() + 16);
    let mut rest = source.chars().peekable();
    let mut in_class = false;
    while let Some(char) = rest.next() {
        match (char, in_class) {
            ('\\', _) => escape(&mut rest, in_class, &mut out)?,
            ('[', false) => in_class = open_class(&mut rest, &mut out),
            (']', true) => {
                in_class = false;
                out.push(']');
            }
            // Special to the engine only: POSIX classes and operations on sets.
            ('[' | '&' | '~', true) => out.extend(['\\', char]),
            ('-', true) if rest.peek() == Some(&'-') => {
                return Err("escape the hyphens in `--`".to_owned());
            }
            ('.', false) => out.push_str(r"[^\n\r\u{2028}\u{2029}]"),
            ('(', false) if rest.peek() == Some(&'?') => {
                let mut ahead = rest.clone();
                ahead.next();
                let is_group = match ahead.next() {
                    Some(':') => true,
                    Some('<') => !matches!(ahead.next(), Some('=' | '!')),
                    _ => false,
                };
                if !is_group {
                    return Err("it has look-around or flags".to_owned());
                }
                out.push('(');
            }
            _ => out.push(char),
        }
    }
    Ok(out)
}

/// Whether a class is open afterwards.
fn open_class(rest: &mut Peekable<Chars<'_>>, out: &mut String) -> bool {
    let negated = rest.next_if_eq(&'^').is_some();
    // Here the engine would take the bracket for a member.
    if rest.next_if_eq(&']').is_some() {
        out.push_str(if negated { r"[\x00-\u{10FFFF}]" } else { r"[^\x00-\u{10FFFF}]" });
        return false;
    }
    out.push_str(if negated { "[^" } else { "[" });
    true
}

fn escape(rest: &mut Peekable<Chars<'_>>, in_class: bool, out: &mut String) -> Result<(), String> {
    let Some(char) = rest.next() else { return Err("it ends with a backslash".to_owned()) };
    match char {
        'd' | 'D' | 'w' | 'W' => out.extend(['\\', char]),
        's' | 'S' if in_class => out.push_str(if char == 's' { SPACE } else { NOT_SPACE }),
        's' | 'S' => {
            out.push('[');
            out.push_str(if char == 's' { SPACE } else { NOT_SPACE });
            out.push(']');
        }
        'b' if in_class => out.push_str(r"\x08"),
        'b' | 'B' if !in_class && rest.peek() != Some(&'{') => out.extend(['\\', char]),
        'n' | 'r' | 't' | 'f' | 'v' => out.extend(['\\', char]),
        '0' if !rest.peek().is_some_and(char::is_ascii_digit) => out.push_str(r"\x00"),
        'c' => match rest.next_if(char::is_ascii_alphabetic) {
            Some(letter) => push_code(u32::from(letter) & 0x1F, out)?,
            None => return Err(r"`\c` needs a letter".to_owned()),
        },
        'x' => push_code(hex(rest, 2)?, out)?,
        'u' if rest.next_if_eq(&'{').is_some() => {
            out.push_str(r"\u{");
        }
        'u' => {
            let mut code = hex(rest, 4)?;
            // One character in two halves.
            if (0xD800..0xDC00).contains(&code) {
                let mut ahead = rest.clone();
                let is_pair = (ahead.next(), ahead.next()) == (Some('\\'), Some('u'));
                if is_pair && let Ok(low @ 0xDC00..0xE000) = hex(&mut ahead, 4) {
                    code = 0x1_0000 + ((code - 0xD800) << 10) + (low - 0xDC00);
                    *rest = ahead;
                }
            }
            push_code(code, out)?;
        }
        // To the engine these two are borders of words.
        '<' | '>' => out.push(char),
        _ if char.is_ascii_punctuation() => out.extend(['\\', char]),
        _ => return Err(format!("it has `\\{char}`; no Unicode classes and no back-references")),
    }
    // Outside of Unicode mode a hyphen after a class is itself: `[\w-.]`.
    let is_set = matches!(char, 'd' | 'D' | 'w' | 'W' | 's' | 'S');
    if in_class && is_set && rest.next_if_eq(&'-').is_some() {
        out.push_str(r"\-");
    }
    Ok(())
}

fn hex(rest: &mut Peekable<Chars<'_>>, digits: usize) -> Result<u32, String> {
    (0..digits).try_fold(0, |code, _| match rest.next().and_then(|digit| digit.to_digit(16)) {
        Some(digit) => Ok(code << 4 | digit),
        None => Err("a hexadecimal escape is too short".to_owned()),
    })
}

fn push_code(code: u32, out: &mut String) -> Result<(), String> {
    if char::from_u32(code).is_none() {
        return Err("it has half of a surrogate pair".to_owned());
    }
    out.push_str(&format!(r"\x{{{code:X}}}"));
    Ok(())
}

/// What `\s` stands for.
const SPACE: &str =
    r"\t-\r \u{A0}\u{1680}\u{2000}-\u{200A}\u{2028}\u{2029}\u{202F}\u{205F}\u{3000}\u{FEFF}";
/// All the rest.
const NOT_SPACE: &str = r"\x00-\x08\x0E-\x1F!-\u{9F}\u{A1}-\u{167F}\u{1681}-\u{1FFF}\u{200B}-\u{2027}\u{202A}-\u{202E}\u{2030}-\u{205E}\u{2060}-\u{2FFF}\u{3001}-\u{FEFE}\u{FF00}-\u{10FFFF}";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, good: &[&str], bad: &[&str]) {
        let compiled = Pattern::new(pattern).unwrap();
        for text in good {
            assert!(compiled.is_match(text), "{pattern} and {text:?}");
        }
        for text in bad {
            assert!(!compiled.is_match(text), "{pattern} but {text:?}");
        }
    }

    #[test]
    fn ecma_262_is_read_as_ecma_262() {
        check("a+", &["xay"], &["xy"]);
        check("^abc$", &["abc"], &["abc\n"]);
        check(r"^\d\w$", &["1a", "1_"], &["١a", "1é"]);
        check(r"^\/\-\<\.$", &["/-<."], &["/-<x"]);
        check("^.$", &["a", "😀"], &["\n", "\r", "\u{2028}", "\u{2029}"]);
        check("^[^]$", &["\n", "a"], &[""]);
        check("^a[]?$", &["a"], &["a]"]);
        check(r"^\s$", &[" ", "\u{A0}", "\u{FEFF}", "\u{2029}", "\u{B}"], &["\u{1}", "\u{E}"]);
        check(r"^\S$", &["\u{1}", "\u{E}", "é"], &[" ", "\u{A0}", "\u{FEFF}", "\u{2029}"]);
        check(r"^[\s\S]$", &["\n", "\u{A0}", "a"], &["", "ab"]);
        check(r"^[^\S]$", &["\u{A0}"], &["a"]);
        check(r"^\cC\0[\b]\x41é\uD83D\uDE00\u{1F600}$", &["\u{3}\0\u{8}Aé😀😀"], &["C"]);
        check(r"^[\w-.]+@([\w-]+\.)+[\w-]{2,4}$", &["a-b.c@d.org"], &["a/b@d.org"]);
        check("^[[:a]$", &["[", ":", "a"], &["b", "]"]);
        check("^[a&&b~]$", &["&", "~"], &["c"]);
        check("^(?<year>[0-9]{4})(?:-x)?$", &["2026", "2026-x"], &["20"]);
        check(r"\bcat\b", &["a cat."], &["cats"]);
    }

    #[test]
    fn what_is_not_supported_is_an_error() {
        for pattern in [
            r"\p{L}",
            r"\P{L}",
            r"(a)\1",
            r"\k<a>",
            "(?=a)",
            "(?!a)",
            "(?<=a)",
            "(?<!a)",
            "(?i)a",
            "(?i:a)",
            r"\a",
            r"\A",
            r"\z",
            r"\Ua",
            r"\b{start}",
            r"\ud800",
            r"\u12",
            r"\x1",
            r"\c1",
            r"\01",
            "a\\",
            "[a",
            "(a",
            "a)",
            "*",
            "a{2,1}",
            "[z-a]",
            "[+--]",
            "(?P<a>b)",
            "{,3}",
        ] {
            let fault = Pattern::new(pattern).unwrap_err();
            assert!(fault.contains(pattern), "{fault}");
        }
    }

    #[test]
    fn the_two_kinds_of_characters_are_complements() {
        let (space, other) = (Pattern::new(r"\s").unwrap(), Pattern::new(r"[\S]").unwrap());
        for char in (0..=0x1_0000).filter_map(char::from_u32) {
            let text = char.to_string();
            assert_ne!(space.is_match(&text), other.is_match(&text), "{char:?}");
            let is_space = char == '\u{FEFF}' || (char.is_whitespace() && char != '\u{85}');
            assert_eq!(space.is_match(&text), is_space, "{char:?}");
        }
    }
}
