//! Reading request headers: `Accept`, `Content-Type`, and the headers that mirror the body.

use std::{borrow::Cow, str};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::HeaderValue;

/// Which of the two reply types the client takes (HTTP-15, A-19).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accept {
    pub json: bool,
    pub sse: bool,
}

impl Accept {
    const BOTH: Self = Self { json: true, sse: true };

    /// Reads all `Accept` lines of a request as one list.
    ///
    /// Without a line, or with an empty list, the client has excluded nothing. The most specific
    /// range that covers a type decides about it (RFC 9110 §12.5.1), parameters of a range do not
    /// matter.
    pub(crate) fn parse<'a>(headers: impl Iterator<Item = &'a HeaderValue>) -> Self {
        let mut json = Verdict::default();
        let mut sse = Verdict::default();
        let mut excludes_nothing = true;
        for header in headers {
            // What nearly every client sends; only the parsing is saved, other lines still count.
            if header.as_bytes() == b"application/json, text/event-stream" {
                json = json.and(Verdict::NAMED);
                sse = sse.and(Verdict::NAMED);
                excludes_nothing = false;
                continue;
            }
            for range in split_outside_quotes(header.as_bytes(), b',') {
                let mut parts = split_outside_quotes(range, b';');
                let media = parts.next().map(trim_ows).unwrap_or_default();
                if media.is_empty() {
                    continue;
                }
                excludes_nothing = false;
                let accepted = !parts.any(is_zero_weight);
                json =
                    json.and(Verdict::of(media, b"application/*", b"application/json", accepted));
                sse = sse.and(Verdict::of(media, b"text/*", b"text/event-stream", accepted));
            }
        }
        if excludes_nothing {
            return Self::BOTH;
        }
        Self { json: json.accepted, sse: sse.accepted }
    }
}

/// Whether a body of this type is JSON: `application/json` in any case, with any parameters
/// (HTTP-14).
///
/// Structured suffixes such as `application/problem+json` are other types.
pub(crate) fn is_json(content_type: &HeaderValue) -> bool {
    let value = content_type.as_bytes();
    if value == b"application/json" {
        return true;
    }
    let media = value.split(|&byte| byte == b';').next().unwrap_or_default();
    trim_ows(media).eq_ignore_ascii_case(b"application/json")
}

/// Returns the text of a header without the whitespace around it (HDR-12).
///
/// # Errors
/// When a character is neither visible ASCII, space nor tab (HDR-11).
pub(crate) fn plain_value(value: &HeaderValue) -> Result<&str, BadHeader> {
    // `to_str` permits exactly the characters of HDR-11.
    let text = value.to_str().map_err(|_| BadHeader::Characters)?;
    Ok(text.trim_matches([' ', '\t']))
}

/// Returns the text that a header mirrors: the plain value, or what its sentinel holds
/// (HDR-08..10).
///
/// # Errors
/// When the value has characters that no header may have, or its sentinel holds anything but strict
/// base64 of UTF-8.
pub(crate) fn mirrored_value(value: &HeaderValue) -> Result<Cow<'_, str>, BadHeader> {
    let plain = plain_value(value)?;
    let Some(payload) =
        plain.strip_prefix(SENTINEL_START).and_then(|rest| rest.strip_suffix(SENTINEL_END))
    else {
        return Ok(Cow::Borrowed(plain));
    };
    // The engine insists on padding and on zero trailing bits, so each text has one encoding.
    let bytes = STANDARD.decode(payload).map_err(|_| BadHeader::Sentinel)?;
    String::from_utf8(bytes).map(Cow::Owned).map_err(|_| BadHeader::Sentinel)
}

/// Whether a header says exactly `text`, in the form that nearly all clients send: no sentinel, no
/// whitespace around it. If not, the value has to be read.
pub(crate) fn says(value: &HeaderValue, text: &str) -> bool {
    value.as_bytes() == text.as_bytes()
        && text.bytes().all(|byte| matches!(byte, b'!'..=b'~'))
        && !text.starts_with(SENTINEL_START)
}

/// Writes `text` the way a client mirrors it: as it is, or as a sentinel where a header could not
/// carry it unchanged or would be mistaken for a sentinel.
#[doc(hidden)]
#[must_use]
pub fn encode_mirrored(text: &str) -> String {
    let safe = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let padded = text.starts_with(' ') || text.ends_with(' ');
    let ambiguous = text.starts_with(SENTINEL_START) && text.ends_with(SENTINEL_END);
    if safe && !padded && !ambiguous {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len().div_ceil(3) * 4 + 11);
    out.push_str(SENTINEL_START);
    STANDARD.encode_string(text, &mut out);
    out.push_str(SENTINEL_END);
    out
}

/// Why the text of a header cannot be read. On the wire both are a header mismatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadHeader {
    /// A character is neither visible ASCII, space nor tab.
    Characters,
    /// The sentinel holds something other than strict base64 of UTF-8.
    Sentinel,
}

/// What the ranges read so far say about one media type.
#[derive(Clone, Copy, Default)]
struct Verdict {
    /// 0 when no range covers the type, then 1 for `*/*`, 2 for `type/*`, 3 for the type itself.
    specificity: u8,
    accepted: bool,
}

impl Verdict {
    const NAMED: Self = Self { specificity: 3, accepted: true };

    fn of(media: &[u8], group: &[u8], exact: &[u8], accepted: bool) -> Self {
        let specificity = if media.eq_ignore_ascii_case(exact) {
            3
        } else if media.eq_ignore_ascii_case(group) {
            2
        } else if media == b"*/*" {
            1
        } else {
            return Self::default();
        };
        Self { specificity, accepted }
    }

    fn and(self, other: Self) -> Self {
        match self.specificity.cmp(&other.specificity) {
            std::cmp::Ordering::Less => other,
            std::cmp::Ordering::Greater => self,
            std::cmp::Ordering::Equal => Self { accepted: self.accepted || other.accepted, ..self },
        }
    }
}

/// Whether a parameter is `q=0`, in any of its spellings. A weight that cannot be read excludes
/// nothing.
fn is_zero_weight(parameter: &[u8]) -> bool {
    let parameter = trim_ows(parameter);
    let Some((b'q' | b'Q', rest)) = parameter.split_first() else { return false };
    let Some((b'=', weight)) = trim_ows(rest).split_first() else { return false };
    match trim_ows(weight) {
        b"0" | b"0." => true,
        [b'0', b'.', decimals @ ..] => decimals.iter().all(|&digit| digit == b'0'),
        _ => false,
    }
}

/// Splits at `separator`, except inside quoted strings.
fn split_outside_quotes(value: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let (mut quoted, mut escaped) = (false, false);
    value.split(move |&byte| {
        if escaped {
            escaped = false;
        } else if byte == b'"' {
            quoted = !quoted;
        } else if quoted {
            escaped = byte == b'\\';
        } else {
            return byte == separator;
        }
        false
    })
}

fn trim_ows(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = value {
        value = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

const SENTINEL_START: &str = "=?base64?";
const SENTINEL_END: &str = "?=";

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(lines: &[&str]) -> (bool, bool) {
        let values: Vec<_> =
            lines.iter().map(|line| HeaderValue::from_str(line).unwrap()).collect();
        let accept = Accept::parse(values.iter());
        (accept.json, accept.sse)
    }

    fn mirrored(bytes: &[u8]) -> Result<String, BadHeader> {
        mirrored_value(&HeaderValue::from_bytes(bytes).unwrap()).map(Cow::into_owned)
    }

    #[test]
    fn a_client_that_excludes_nothing_takes_both() {
        for lines in [&[][..], &[""], &[" , "], &["*/*"], &["text/html, */*;q=0.1"]] {
            assert_eq!(accept(lines), (true, true), "{lines:?}");
        }
    }

    #[test]
    fn accept_names_types_and_groups_in_any_case_and_order() {
        for (line, expected) in [
            ("application/json, text/event-stream", (true, true)),
            ("text/event-stream,application/json", (true, true)),
            ("Application/JSON ; charset=utf-8 , TEXT/event-stream;q=0.5", (true, true)),
            ("application/json", (true, false)),
            ("text/event-stream", (false, true)),
            ("application/*", (true, false)),
            ("text/*", (false, true)),
            ("text/html", (false, false)),
            ("application/problem+json", (false, false)),
            ("application", (false, false)),
            ("*", (false, false)),
        ] {
            assert_eq!(accept(&[line]), expected, "{line}");
        }
    }

    #[test]
    fn weight_zero_excludes_and_the_most_specific_range_decides() {
        for (line, expected) in [
            ("application/json;q=0, text/event-stream", (false, true)),
            ("application/json; Q = 0.000, */*", (false, true)),
            ("*/*;q=0, application/json", (true, false)),
            ("application/json, */*;q=0.", (true, false)),
            ("text/*;q=0, */*", (true, false)),
            ("application/json;q=0.001", (true, false)),
            ("application/json;q=zero", (true, false)),
            ("application/json;q=0, application/json;v=1", (true, false)),
            ("*/*;q=0", (false, false)),
        ] {
            assert_eq!(accept(&[line]), expected, "{line}");
        }
    }

    #[test]
    fn several_accept_lines_are_one_list() {
        assert_eq!(accept(&["application/json", "text/event-stream"]), (true, true));
        assert_eq!(accept(&["*/*", "text/event-stream;q=0"]), (true, false));
        let common = "application/json, text/event-stream";
        assert_eq!(accept(&["text/event-stream;q=0", common]), (true, true));
        assert_eq!(accept(&[common, "text/html"]), (true, true));
    }

    #[test]
    fn quoted_separators_do_not_split() {
        assert_eq!(accept(&[r#"text/html;a="x, application/json""#]), (false, false));
        assert_eq!(accept(&[r#"text/html;a="\", */*";q=1, text/*"#]), (false, true));
        assert_eq!(accept(&[r#"application/json;a=";q=0""#]), (true, false));
    }

    #[test]
    fn unreadable_accept_bytes_name_nothing() {
        let value = HeaderValue::from_bytes(b"\xff\xfe").unwrap();
        assert_eq!(Accept::parse([&value].into_iter()), Accept { json: false, sse: false });
    }

    #[test]
    fn only_application_json_is_json() {
        for good in [
            "application/json",
            "application/json;charset=utf-8",
            "Application/JSON; charset=\"UTF-8\"",
            " application/json ;",
        ] {
            assert!(is_json(&HeaderValue::from_str(good).unwrap()), "{good}");
        }
        for bad in [
            "",
            "application/problem+json",
            "application/jsonx",
            "text/json",
            "application/json x",
            "json",
            ";application/json",
            "application/json, text/plain",
        ] {
            assert!(!is_json(&HeaderValue::from_str(bad).unwrap()), "{bad}");
        }
    }

    #[test]
    fn plain_values_are_trimmed_ascii() {
        let value = HeaderValue::from_bytes(b" \ttools/call\t ").unwrap();
        assert_eq!(plain_value(&value), Ok("tools/call"));
        let value = HeaderValue::from_static("=?base64?YQ==?=");
        assert_eq!(plain_value(&value), Ok("=?base64?YQ==?="), "never decoded (HDR-13)");
        for bad in [&b"caf\xc3\xa9"[..], b"\x80", b"a\xff"] {
            let value = HeaderValue::from_bytes(bad).unwrap();
            assert_eq!(plain_value(&value), Err(BadHeader::Characters));
            assert_eq!(mirrored_value(&value), Err(BadHeader::Characters));
        }
    }

    #[test]
    fn sentinels_are_decoded() {
        assert_eq!(mirrored(b"=?base64?SGVsbG8=?=").unwrap(), "Hello");
        assert_eq!(mirrored(b"  =?base64?w6k=?= ").unwrap(), "é");
        assert_eq!(mirrored(b"=?base64??=").unwrap(), "");
        assert_eq!(mirrored(b"").unwrap(), "");
        assert_eq!(mirrored(b"=?base64?ICBhCg==?=").unwrap(), "  a\n");
    }

    #[test]
    fn what_only_resembles_a_sentinel_is_text() {
        for text in [
            "=?BASE64?SGVsbG8=?=",
            "=?base64?SGVsbG8=",
            "SGVsbG8=?=",
            "=?base64?=",
            "?=",
            "a=?base64?YQ==?=",
        ] {
            assert_eq!(mirrored(text.as_bytes()).unwrap(), text);
        }
        let value = HeaderValue::from_static("plain");
        assert!(matches!(mirrored_value(&value), Ok(Cow::Borrowed("plain"))));
    }

    #[test]
    fn loose_base64_in_a_sentinel_is_refused() {
        for payload in
            ["SGVsbG8", "SGVs!!!bG8=", "SGVsbG8==", "SGVsbG9=", "SGVs bG8=", "_w==", "=", "/w=="]
        {
            let value = format!("=?base64?{payload}?=");
            assert_eq!(mirrored(value.as_bytes()), Err(BadHeader::Sentinel), "{payload}");
        }
    }

    #[test]
    fn every_text_survives_mirroring() {
        for text in [
            "plain",
            "",
            " lead",
            "trail ",
            "\ttab",
            "in\tner",
            "in ner",
            "é",
            "日本",
            "a\r\nb",
            "\0",
            "\u{7f}",
            "=?base64?YQ==?=",
            "=?base64?=",
            "=?base64?",
            "?=",
            "=?base64?not base64?=",
        ] {
            let encoded = encode_mirrored(text);
            assert_eq!(mirrored(encoded.as_bytes()).unwrap(), text);
        }
        assert_eq!(encode_mirrored("note://team/42"), "note://team/42");
        assert_eq!(encode_mirrored("Zoë"), "=?base64?Wm/Dqw==?=");
    }
}
