//! URIs and URI templates of resources.

use crate::origin;

/// Whether `text` is a URI by the syntax of RFC 3986, of at most 8 KiB (RES-10, RES-15).
pub(crate) fn is_uri(text: &str) -> bool {
    if text.len() > MAX_LENGTH {
        return false;
    }
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (hierarchy, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = match hierarchy.strip_prefix("//") {
        Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
        None => ("", hierarchy),
    };
    is_scheme(scheme)
        && is_authority(authority)
        && is_text(path, b":@/")
        && is_text(query, b":@/?")
        && is_text(fragment, b":@/?")
}

/// Whether `text` is the URL of a page that a person may be sent to: HTTPS, or HTTP on a loopback
/// host, without credentials (ELIC-07..09).
pub(crate) fn is_web_page(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let authority = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    is_uri(text) && origin::is_secure(&text[..scheme.len() + "://".len() + authority])
}

/// A template of URIs: RFC 6570 level 1 (`{name}`), and `{+name}` for values that span path
/// segments.
#[derive(Clone, Debug)]
pub(crate) struct UriTemplate {
    /// What comes before the first expression.
    head: String,
    parts: Vec<Part>,
}

impl UriTemplate {
    /// Reads a template.
    ///
    /// # Errors
    /// Names what is not supported, or what would make matches ambiguous.
    pub(crate) fn parse(template: &str) -> Result<Self, String> {
        let fault = |what: String| format!("URI template `{template}`: {what}");
        let (head, mut rest) = split_literal(template);
        let mut parts: Vec<Part> = Vec::new();
        while let Some(opened) = rest.strip_prefix('{') {
            let (expression, after) = opened
                .split_once('}')
                .ok_or_else(|| fault(format!("`{rest}` has no closing brace")))?;
            let (reserved, name) = parse_expression(expression).map_err(fault)?;
            let literal;
            (literal, rest) = split_literal(after);
            if parts.iter().any(|part| part.name == name) {
                return Err(fault(format!("the variable `{name}` occurs twice")));
            }
            if literal.is_empty() && !rest.is_empty() {
                return Err(fault(format!(
                    "put some text between `{{{expression}}}` and what follows it, \
                     else nothing tells where one value ends"
                )));
            }
            parts.push(Part { reserved, name: name.to_owned(), literal: literal.to_owned() });
        }
        if parts.len() > MAX_EXPRESSIONS {
            return Err(fault(format!("it has more than {MAX_EXPRESSIONS} expressions")));
        }
        // Every literal is checked in place, with a value between them that fits anywhere.
        let mut sample = head.to_owned();
        for part in &parts {
            sample.push('1');
            sample.push_str(&part.literal);
        }
        if sample.contains('}') {
            return Err(fault("a closing brace has no opening one".to_owned()));
        }
        if !is_uri(&sample) {
            return Err(fault(
                "it does not make URIs: begin with a literal scheme (`note://`), percent-encode \
                 what RFC 3986 does not allow, and stay below 8 KiB"
                    .to_owned(),
            ));
        }
        Ok(Self { head: head.to_owned(), parts })
    }

    /// The names of the variables, in order.
    pub(crate) fn variables(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().map(|part| part.name.as_str())
    }

    /// Returns names and decoded values when `uri` is one of the template's.
    ///
    /// `{name}` stands for one or more characters other than `/`, `?` and `#`, `{+name}` for one or
    /// more of any kind. Where several splits are possible, the earlier value is the shorter one.
    /// Literal text matches byte for byte.
    ///
    /// A value that could lead out of the place the template describes is no match (RES-11): one
    /// that decodes to something that is not UTF-8 or has a NUL; a `{name}` that decodes to a dot
    /// segment or to text with a slash or backslash; a `{+name}` with a dot segment anywhere, or
    /// with a slash of its own after a slash of the path, which path functions take for an absolute
    /// path. There is no second try with another split.
    ///
    /// The time is at most the length of the URI times that of the template.
    pub(crate) fn matches(&self, uri: &str) -> Option<Vec<(String, String)>> {
        let rest = uri.strip_prefix(self.head.as_str())?;
        let last = self.parts.last().map_or("", |part| &part.literal);
        // From here on all text is ASCII.
        if !rest.ends_with(last) || !is_uri(uri) {
            return None;
        }
        let Some(ends) = self.ends(rest.as_bytes()) else {
            return (self.parts.is_empty() && rest.is_empty()).then(Vec::new);
        };
        let mut values = Vec::with_capacity(self.parts.len());
        let mut before = self.head.as_str();
        let mut start = 0;
        for (part, end) in self.parts.iter().zip(ends) {
            let value = percent_decode(rest.get(start..end)?)?;
            if !part.is_safe(before, &value) {
                return None;
            }
            values.push((part.name.clone(), value));
            before = &part.literal;
            start = end + part.literal.len();
        }
        Some(values)
    }

    /// Finds where each value ends in `rest`, which begins at the first expression.
    ///
    /// Works from the last part to the first. `next[p]` is the first position from `p` on at which
    /// the value of a part may end: its literal stands there, and the parts after it match what
    /// follows. The parts before need only look up one entry, so nothing is ever tried twice.
    fn ends(&self, rest: &[u8]) -> Option<Vec<usize>> {
        let length = rest.len();
        let mut table: Vec<Vec<Option<usize>>> = Vec::with_capacity(self.parts.len());
        // For the part handled last: whether it and all after it match from a position to the end.
        let mut matches_from = vec![false; length + 1];
        matches_from[length] = true;
        for part in self.parts.iter().rev() {
            let literal = part.literal.as_bytes();
            let mut next = vec![None; length + 2];
            for position in (0..=length).rev() {
                let is_end =
                    rest[position..].starts_with(literal) && matches_from[position + literal.len()];
                next[position] = if is_end { Some(position) } else { next[position + 1] };
            }
            // The first character from each position on that the value must not have.
            let mut stop = length;
            for position in (0..=length).rev() {
                if !part.reserved && rest.get(position).is_some_and(|byte| b"/?#".contains(byte)) {
                    stop = position;
                }
                matches_from[position] = next[position + 1].is_some_and(|end| end <= stop);
            }
            table.push(next);
        }
        let mut ends = Vec::with_capacity(self.parts.len());
        let mut start = 0;
        (!self.parts.is_empty() && matches_from[0]).then_some(())?;
        for (part, next) in self.parts.iter().zip(table.iter().rev()) {
            let end = (*next.get(start + 1)?)?;
            ends.push(end);
            start = end + part.literal.len();
        }
        Some(ends)
    }
}

/// An expression and the literal text after it.
#[derive(Clone, Debug)]
struct Part {
    /// Written `{+name}`.
    reserved: bool,
    name: String,
    literal: String,
}

impl Part {
    /// Whether a decoded value stays inside the place that the template describes (RES-11).
    fn is_safe(&self, before: &str, value: &str) -> bool {
        let is_dots = |segment: &str| matches!(segment, "." | "..");
        if value.contains('\0') {
            return false;
        }
        if !self.reserved {
            return !value.contains(['/', '\\']) && !is_dots(value);
        }
        // Directly after `scheme://` a slash begins the path and is no second one.
        let absolute =
            before.ends_with('/') && !before.ends_with("://") && value.starts_with(['/', '\\']);
        !absolute && !value.split(['/', '\\', '?', '#']).any(is_dots)
    }
}

/// Reads what stands between braces: whether it is reserved, and the name.
fn parse_expression(expression: &str) -> Result<(bool, &str), String> {
    let unsupported = |what: &str| {
        Err(format!("`{{{expression}}}` {what}; `{{name}}` and `{{+name}}` are supported"))
    };
    let (reserved, name) = match expression.strip_prefix('+') {
        Some(name) => (true, name),
        None => (false, expression),
    };
    if let Some(operator) = name.chars().next().filter(|first| "+#./;?&=,!@|".contains(*first)) {
        return unsupported(&format!("has the operator `{operator}`"));
    }
    if name.contains(',') {
        return unsupported("lists several variables");
    }
    if name.contains([':', '*']) {
        return unsupported("has a modifier");
    }
    let is_name = name.split('.').all(|word| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    });
    if !is_name {
        return unsupported("has no name of ASCII letters, digits, `_` and inner dots");
    }
    Ok((reserved, name))
}

/// Splits before the next expression.
fn split_literal(text: &str) -> (&str, &str) {
    text.split_at(text.find('{').unwrap_or(text.len()))
}

pub(crate) fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut out = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'%' => hex(bytes.next()?)? << 4 | hex(bytes.next()?)?,
            other => other,
        });
    }
    String::from_utf8(out).ok()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

fn is_scheme(scheme: &str) -> bool {
    scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
}

fn is_authority(authority: &str) -> bool {
    let (user, host_port) = authority.split_once('@').unwrap_or(("", authority));
    let (host, port) = match host_port.strip_prefix('[') {
        Some(rest) => {
            let Some((literal, port)) = rest.split_once(']') else { return false };
            if !is_ip_literal(literal) {
                return false;
            }
            match port.strip_prefix(':') {
                Some(port) => ("", port),
                None if port.is_empty() => ("", ""),
                None => return false,
            }
        }
        None => host_port.split_once(':').unwrap_or((host_port, "")),
    };
    is_text(user, b":") && is_text(host, b"") && port.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_ip_literal(literal: &str) -> bool {
    if let Some(future) = literal.strip_prefix(['v', 'V']) {
        return future.split_once('.').is_some_and(|(version, address)| {
            !version.is_empty()
                && version.bytes().all(|byte| byte.is_ascii_hexdigit())
                && !address.is_empty()
                && !address.contains('%')
                && is_text(address, b":")
        });
    }
    literal.parse::<std::net::Ipv6Addr>().is_ok()
}

/// Whether `text` consists of unreserved characters, sub-delimiters, escapes, and those in `also`.
fn is_text(text: &str, also: &[u8]) -> bool {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let good = match byte {
            b'%' => {
                bytes.next().is_some_and(|byte| byte.is_ascii_hexdigit())
                    && bytes.next().is_some_and(|byte| byte.is_ascii_hexdigit())
            }
            byte => {
                byte.is_ascii_alphanumeric()
                    || b"-._~!$&'()*+,;=".contains(&byte)
                    || also.contains(&byte)
            }
        };
        if !good {
            return false;
        }
    }
    true
}

const MAX_LENGTH: usize = 8 * 1024;
/// Bounds the table that matching builds.
const MAX_EXPRESSIONS: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(template: &str, uri: &str) -> Option<Vec<String>> {
        let values = UriTemplate::parse(template).unwrap().matches(uri)?;
        Some(values.into_iter().map(|(_, value)| value).collect())
    }

    fn error(template: &str) -> String {
        UriTemplate::parse(template).unwrap_err()
    }

    #[test]
    fn uris_follow_rfc_3986() {
        for good in [
            "note://team/42",
            "file:///etc/hosts",
            "a:",
            "a:b",
            "a:/",
            "urn:isbn:0451450523",
            "mailto:a@b.example",
            "https://u:p@h.example:80/p;x=1?q=/?&a=b#f/?",
            "x-y+z.1://h",
            "http://[2001:db8::1]:8080/",
            "http://[::1]",
            "http://[v1.fe80:a+en1]/",
            "s://",
            "s://:80",
            "s://h:",
            "s:%41%c3%A9",
            "s:a'b(c)*!$&,;=~",
            "tel:+1-201",
            "s:a//b",
        ] {
            assert!(is_uri(good), "{good}");
        }
        for bad in [
            "",
            "note",
            "/a/b",
            "//h/p",
            "1a:b",
            ":b",
            "a b:c",
            "é:x",
            "s:é",
            "s:a b",
            "s:%",
            "s:%4",
            "s:%zz",
            "s:a\\b",
            "s:<a>",
            "s:\"",
            "s:{a}",
            "s:a^b",
            "s:a|b",
            "s:`",
            "s:a#b#c",
            "s:[a]",
            "s://h/[a]",
            "s:?[",
            "http://[::1",
            "http://::1]",
            "http://[::1]x",
            "http://[1.2.3.4]",
            "http://[v1]",
            "http://[vz.a]",
            "http://h:8a/",
            "http://a@b@c/",
            "http://h:1:2/",
            "s:a\n",
            "s:\0",
        ] {
            assert!(!is_uri(bad), "{bad}");
        }
        let longest = format!("s:{}", "a".repeat(MAX_LENGTH - 2));
        assert!(is_uri(&longest));
        assert!(!is_uri(&(longest + "a")));
    }

    #[test]
    fn web_pages_are_https_or_local() {
        for good in [
            "https://a.example/connect/7f3c?x=1#y",
            "HTTPS://a.example",
            "https://a.example:8443?x",
            "http://localhost:3000/",
            "http://127.0.0.1",
            "http://[::1]:80/a",
            "https://localhost/",
        ] {
            assert!(is_web_page(good), "{good}");
        }
        for bad in [
            "http://a.example/",
            "https:///x",
            "https://",
            "https:a.example",
            "https://u:p@a.example/",
            "ftp://localhost/",
            "javascript:alert(1)",
            "https://a.example/a b",
            "a.example",
            "http://localhost.a.example/",
            "http://localhost@a.example/",
            "http://a.example#://localhost",
            "https://a.example\\@b.example/",
        ] {
            assert!(!is_web_page(bad), "{bad}");
        }
    }

    #[test]
    fn templates_name_their_variables() {
        let template = UriTemplate::parse("db://{schema}/{table.name}/{+rest}").unwrap();
        assert_eq!(template.variables().collect::<Vec<_>>(), ["schema", "table.name", "rest"]);
        assert_eq!(UriTemplate::parse("db://fixed").unwrap().variables().count(), 0);
    }

    #[test]
    fn unsupported_expressions_are_named() {
        for (template, expression, what) in [
            ("s://h{?q}", "`{?q}`", "operator `?`"),
            ("s://h{/p}", "`{/p}`", "operator `/`"),
            ("s://h{#f}", "`{#f}`", "operator `#`"),
            ("s://h{&q}", "`{&q}`", "operator `&`"),
            ("s://h{.x}", "`{.x}`", "operator `.`"),
            ("s://h{;x}", "`{;x}`", "operator `;`"),
            ("s://{=x}", "`{=x}`", "operator `=`"),
            ("s://{a,b}", "`{a,b}`", "several"),
            ("s://{a:3}", "`{a:3}`", "modifier"),
            ("s://{a*}", "`{a*}`", "modifier"),
            ("s://{}", "`{}`", "no name"),
            ("s://{a b}", "`{a b}`", "no name"),
            ("s://{a..b}", "`{a..b}`", "no name"),
            ("s://{%41}", "`{%41}`", "no name"),
            ("s://{{a}}", "`{{a}`", "no name"),
        ] {
            let error = error(template);
            for part in [template, expression, what, "`{name}` and `{+name}` are supported"] {
                assert!(error.contains(part), "{error}");
            }
        }
    }

    #[test]
    fn templates_that_cannot_work_are_refused() {
        for (template, what) in [
            ("s://{a}{b}", "between `{a}`"),
            ("s://{+a}{b}x", "between `{+a}`"),
            ("s://{a}/{a}", "`a` occurs twice"),
            ("s://{a", "no closing brace"),
            ("s://a}", "no opening one"),
            ("s://{a}/}", "no opening one"),
            ("{+all}", "literal scheme"),
            ("{scheme}://h", "literal scheme"),
            ("notes/{id}", "literal scheme"),
            ("s://h/a b/{id}", "percent-encode"),
            ("s://h/é/{id}", "percent-encode"),
        ] {
            let error = error(template);
            assert!(error.contains(template) && error.contains(what), "{error}");
        }
        let many: String = (0..33).map(|index| format!("/{{v{index}}}")).collect();
        assert!(error(&format!("s://h{many}")).contains("more than 32"));
    }

    #[test]
    fn simple_variables_take_one_segment() {
        assert_eq!(matches("note://{team}/{id}", "note://a/42").unwrap(), ["a", "42"]);
        assert_eq!(matches("note://{id}", "note://caf%C3%A9%20x").unwrap(), ["café x"]);
        assert_eq!(
            matches("s://h/{a}.{b}?v={c}#x", "s://h/1.tar.gz?v=9#x").unwrap(),
            ["1", "tar.gz", "9"]
        );
        assert_eq!(matches("s://fixed", "s://fixed").unwrap(), Vec::<String>::new());
        for (template, uri) in [
            ("note://{id}", "note://"),
            ("note://{id}", "note://a/b"),
            ("note://{id}", "note://a?b"),
            ("note://{id}", "note://a#b"),
            ("note://{id}/x", "note://a/y"),
            ("note://{id}/x", "note:///x"),
            ("note://{a}/{b}", "note://a/"),
            ("note://{id}", "NOTE://a"),
            ("s://fixed", "s://fixed/"),
            ("s://fixed", "s://fix"),
            ("note://{id}", "note://a b"),
            ("note://{id}", "note://é"),
            ("note://{id}", "note://%4"),
        ] {
            assert_eq!(matches(template, uri), None, "{template} {uri}");
        }
    }

    #[test]
    fn reserved_variables_span_segments() {
        assert_eq!(matches("file:///data/{+path}", "file:///data/a/b.txt").unwrap(), ["a/b.txt"]);
        assert_eq!(matches("file://{+path}", "file:///home/x").unwrap(), ["/home/x"]);
        assert_eq!(matches("s://{+a}/x", "s://1/x/x/x").unwrap(), ["1/x/x"]);
        assert_eq!(matches("s://h/{+p}?q={q}", "s://h/a/b?q=1").unwrap(), ["a/b", "1"]);
        assert_eq!(matches("s://h/{+all}", "s://h/a?b#c").unwrap(), ["a?b#c"]);
    }

    #[test]
    fn the_earlier_value_is_the_shorter_one_that_still_matches() {
        assert_eq!(matches("s://{a}-{b}", "s://1-2-3").unwrap(), ["1", "2-3"]);
        assert_eq!(matches("s://{+a}/{b}", "s://1/2/3").unwrap(), ["1/2", "3"]);
        assert_eq!(matches("s://{+a}-{b}/x/{c}", "s://1-2/3-4/x/5").unwrap(), ["1-2/3", "4", "5"]);
        assert_eq!(matches("s://{a}aa{b}", "s://aaaa").unwrap(), ["a", "a"]);
        assert_eq!(matches("s://{a}aa{b}", "s://aaa"), None);
        assert_eq!(matches("s://{+a}/{+b}/z", "s://1/2/z/z").unwrap(), ["1", "2/z"]);
    }

    #[test]
    fn values_that_lead_elsewhere_do_not_match() {
        for value in [
            "..",
            ".",
            "%2e%2e",
            ".%2E",
            "%2e",
            "a%2Fb",
            "..%2f..%2fetc",
            "%5c",
            "a%5C..%5cb",
            "%00",
            "a%00.txt",
            "%ff",
            "%c0%af",
            "%ed%a0%80",
        ] {
            assert_eq!(matches("s://h/{id}", &format!("s://h/{value}")), None, "{value}");
            assert_eq!(matches("s://h/{id}/z", &format!("s://h/{value}/z")), None, "{value}");
        }
        for value in [
            "..",
            ".",
            "a/../b",
            "a/..",
            "../a",
            "./a",
            "a/./b",
            "a/%2e%2E/b",
            "a%2f..%2fb",
            "..%5ca",
            "a%5c..",
            "..?x",
            "a/..%23",
            "a/%00",
            "%ff",
            "/etc/passwd",
            "%2Fetc/passwd",
            "%5cserver%5cshare",
        ] {
            assert_eq!(matches("s://h/{+path}", &format!("s://h/{value}")), None, "{value}");
        }
        for (value, text) in [
            ("...", "..."),
            ("..a", "..a"),
            ("a..b", "a..b"),
            ("%252e%252e", "%2e%2e"),
            (".hidden", ".hidden"),
        ] {
            assert_eq!(matches("s://h/{id}", &format!("s://h/{value}")).unwrap(), [text]);
            assert_eq!(matches("s://h/{+id}", &format!("s://h/{value}")).unwrap(), [text]);
        }
        assert_eq!(
            matches("s://h/.{+p}", "s://h/../etc"),
            None,
            "a dot of the template and one of the value"
        );
        assert_eq!(matches("s://h/.{p}", "s://h/.."), None);
    }

    #[test]
    fn a_split_inside_an_escape_does_not_match() {
        assert_eq!(matches("s://{a}2F{b}", "s://x%2Fy"), None);
    }

    #[test]
    fn hostile_uris_cost_no_more_than_their_length_times_the_template() {
        let names: Vec<String> = (0..32).map(|index| format!("{{+v{index}}}")).collect();
        let template = UriTemplate::parse(&format!("s:{}b", names.join("a"))).unwrap();
        // Backtracking would try some 8,000 to the power of 31 splits of each.
        let long = format!("s:{}", "a".repeat(MAX_LENGTH - 2));
        assert!(template.matches(&long).is_none());
        assert!(template.matches(&format!("{}cb", &long[..MAX_LENGTH - 2])).is_some());
        assert!(template.matches(&(long + "b")).is_none(), "too long");
    }

    #[test]
    fn matching_agrees_with_trying_every_split() {
        // Every text over a small alphabet against templates that invite wrong splits.
        fn splits(parts: &[Part], rest: &str) -> bool {
            let Some((part, after)) = parts.split_first() else { return rest.is_empty() };
            (1..=rest.len()).any(|end| {
                let (value, tail) = rest.split_at(end);
                (part.reserved || !value.contains('/'))
                    && tail
                        .strip_prefix(part.literal.as_str())
                        .is_some_and(|tail| splits(after, tail))
            })
        }
        for template in ["s:{a}a{b}", "s:{+a}/{b}a", "s:{a}ab{+b}a{c}", "s:{+a}aa{b}/a{+c}"] {
            let template = UriTemplate::parse(template).unwrap();
            for length in 0..=7u32 {
                for number in 0..3usize.pow(length) {
                    let text: String = (0..length)
                        .map(|digit| char::from(b"ab/"[number / 3usize.pow(digit) % 3]))
                        .collect();
                    let found = template.ends(text.as_bytes());
                    assert_eq!(
                        found.is_some(),
                        splits(&template.parts, &text),
                        "{template:?} {text}"
                    );
                }
            }
        }
    }
}
