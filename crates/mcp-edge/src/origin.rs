//! Which `Host` and `Origin` headers are let in: the defence against DNS rebinding and foreign
//! pages (HTTP-02..04, A-34).
//!
//! Rules are parsed once, when a server is built; matching a header allocates nothing. A header
//! that is not exactly a host with an optional port, or an origin, matches no rule but `Any`.

use std::{
    net::{Ipv4Addr, Ipv6Addr},
    str,
};

/// Which `Host` headers are let in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum HostRules {
    /// `localhost`, `127.0.0.0/8` and `[::1]`, any port (HTTP-04).
    #[default]
    Loopback,
    /// No check: the front door routes by host already.
    Any,
    /// These hosts.
    List(Vec<HostRule>),
}

impl HostRules {
    /// Makes rules from entries such as `mcp.example.com` (any port) or `mcp.example.com:8443`.
    ///
    /// # Errors
    /// Names the first entry that is no host.
    pub(crate) fn list<'a>(entries: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        entries.into_iter().map(HostRule::parse).collect::<Result<_, _>>().map(Self::List)
    }

    /// Whether a request with this `Host` header may come in.
    pub(crate) fn allows(&self, header: &[u8]) -> bool {
        let rules = match self {
            Self::Any => return true,
            Self::Loopback => {
                return is_usual_loopback(header)
                    || Authority::parse(header).is_some_and(|authority| authority.is_loopback());
            }
            Self::List(rules) => rules,
        };
        rules.iter().any(|rule| rule.text.as_bytes() == header)
            || Authority::parse(header)
                .is_some_and(|authority| rules.iter().any(|rule| rule.matches(&authority)))
    }
}

/// Whether a header is `localhost` or `127.0.0.1` with or without a port, as nearly all loopback
/// clients write it. Anything else is parsed.
fn is_usual_loopback(header: &[u8]) -> bool {
    let rest = header.strip_prefix(b"127.0.0.1").or_else(|| header.strip_prefix(b"localhost"));
    match rest {
        Some([]) => true,
        Some([b':', port @ ..]) => {
            (1..=4).contains(&port.len()) && port.iter().all(u8::is_ascii_digit)
        }
        _ => false,
    }
}

/// Which `Origin` headers are let in. A request without the header is not from a browser and is not
/// asked (HTTP-03).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum OriginRules {
    /// Pages served over HTTP or HTTPS from `localhost`, `127.0.0.0/8` and `[::1]`, any port.
    #[default]
    Loopback,
    /// These origins.
    List(Vec<OriginRule>),
}

impl OriginRules {
    /// Makes rules from entries such as `https://app.example.com`, or the literal `null`.
    ///
    /// # Errors
    /// Names the first entry that is no origin.
    pub(crate) fn list<'a>(entries: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        entries.into_iter().map(OriginRule::parse).collect::<Result<_, _>>().map(Self::List)
    }

    /// Whether a request with this `Origin` header may come in.
    pub(crate) fn allows(&self, header: &[u8]) -> bool {
        match self {
            Self::Loopback => Origin::parse(header).is_some_and(|origin| {
                (origin.scheme.eq_ignore_ascii_case("http")
                    || origin.scheme.eq_ignore_ascii_case("https"))
                    && origin.authority.is_loopback()
            }),
            Self::List(rules) if header == b"null" => rules.contains(&OriginRule::Null),
            Self::List(rules) => Origin::parse(header)
                .is_some_and(|origin| rules.iter().any(|rule| rule.matches(&origin))),
        }
    }
}

/// Whether a page of this origin may be shown to a person: HTTPS, or HTTP on a loopback host
/// (ELIC-09).
pub(crate) fn is_secure(origin: &str) -> bool {
    Origin::parse(origin.as_bytes()).is_some_and(|origin| {
        origin.scheme.eq_ignore_ascii_case("https")
            || origin.scheme.eq_ignore_ascii_case("http") && origin.authority.is_loopback()
    })
}

/// One entry of a host list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostRule {
    /// The entry as it was given, which is what most headers say.
    text: String,
    host: Host<String>,
    /// Any port when there is none.
    port: Option<u16>,
}

impl HostRule {
    fn parse(entry: &str) -> Result<Self, String> {
        let authority = Authority::parse(entry.as_bytes()).ok_or_else(|| {
            format!(
                "`{entry}` is not a host: write `mcp.example.com` or `mcp.example.com:8443`, \
                 without scheme, path or trailing dot"
            )
        })?;
        Ok(Self { text: entry.to_owned(), host: authority.host.to_owned(), port: authority.port })
    }

    /// Clients leave the port of the scheme out, so an entry with one of those two ports also
    /// matches a header without.
    fn matches(&self, authority: &Authority<'_>) -> bool {
        self.host.matches(&authority.host)
            && match (self.port, authority.port) {
                (None, _) | (Some(80 | 443), None) => true,
                (rule, given) => rule == given,
            }
    }
}

/// One entry of an origin list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OriginRule {
    /// The opaque origin of sandboxed frames and local files.
    Null,
    /// A scheme, a host, and a port unless it is the scheme's own.
    Site { scheme: String, host: Host<String>, port: Option<u16> },
}

impl OriginRule {
    fn parse(entry: &str) -> Result<Self, String> {
        if entry == "null" {
            return Ok(Self::Null);
        }
        let origin = Origin::parse(entry.as_bytes()).ok_or_else(|| {
            format!(
                "`{entry}` is not an origin: write `https://app.example.com` or \
                 `http://localhost:3000`, without path, trailing slash or wildcard"
            )
        })?;
        Ok(Self::Site {
            scheme: origin.scheme.to_ascii_lowercase(),
            port: origin.port(),
            host: origin.authority.host.to_owned(),
        })
    }

    fn matches(&self, origin: &Origin<'_>) -> bool {
        match self {
            Self::Null => false,
            Self::Site { scheme, host, port } => {
                scheme.eq_ignore_ascii_case(origin.scheme)
                    && host.matches(&origin.authority.host)
                    && *port == origin.port()
            }
        }
    }
}

struct Origin<'a> {
    scheme: &'a str,
    authority: Authority<'a>,
}

impl<'a> Origin<'a> {
    fn parse(value: &'a [u8]) -> Option<Self> {
        let (scheme, rest) = str::from_utf8(value).ok()?.split_once("://")?;
        let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
        is_scheme.then_some(())?;
        Some(Self { scheme, authority: Authority::parse(rest.as_bytes())? })
    }

    /// The port, unless it is the scheme's own.
    fn port(&self) -> Option<u16> {
        self.authority.port.filter(|&port| match port {
            80 => !self.scheme.eq_ignore_ascii_case("http"),
            443 => !self.scheme.eq_ignore_ascii_case("https"),
            _ => true,
        })
    }
}

struct Authority<'a> {
    host: Host<&'a str>,
    port: Option<u16>,
}

impl<'a> Authority<'a> {
    fn parse(value: &'a [u8]) -> Option<Self> {
        let value = str::from_utf8(value).ok()?;
        if let Some(rest) = value.strip_prefix('[') {
            let (address, rest) = rest.split_once(']')?;
            let port =
                if rest.is_empty() { None } else { Some(parse_port(rest.strip_prefix(':')?)?) };
            return Some(Self { host: Host::V6(address.parse().ok()?), port });
        }
        let (name, port) = match value.split_once(':') {
            Some((name, port)) => (name, Some(parse_port(port)?)),
            None => (value, None),
        };
        // Labels only: no userinfo, no escapes, no whitespace, and no trailing dot, which would
        // give one host two spellings.
        let is_name = name.split('.').all(|label| {
            !label.is_empty()
                && label
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        });
        is_name.then_some(Self { host: Host::Name(name), port })
    }

    fn is_loopback(&self) -> bool {
        match self.host {
            Host::Name(name) => {
                name.eq_ignore_ascii_case("localhost")
                    || name.parse().is_ok_and(|address: Ipv4Addr| address.is_loopback())
            }
            Host::V6(address) => address.is_loopback(),
        }
    }
}

/// A host; a name may also be an IPv4 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Host<S> {
    Name(S),
    V6(Ipv6Addr),
}

impl Host<&str> {
    fn to_owned(self) -> Host<String> {
        match self {
            Self::Name(name) => Host::Name(name.to_ascii_lowercase()),
            Self::V6(address) => Host::V6(address),
        }
    }
}

impl Host<String> {
    fn matches(&self, given: &Host<&str>) -> bool {
        match (self, given) {
            (Self::Name(rule), Host::Name(given)) => rule.eq_ignore_ascii_case(given),
            (Self::V6(rule), Host::V6(given)) => rule == given,
            _ => false,
        }
    }
}

fn parse_port(port: &str) -> Option<u16> {
    // `parse` alone would also take a sign.
    (port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit())).then_some(())?;
    port.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GARBAGE_HOSTS: [&str; 22] = [
        "",
        ":",
        ":80",
        "localhost:",
        "localhost:x",
        "localhost:+80",
        "localhost:65536",
        "localhost:000080",
        "localhost:80:80",
        "localhost.",
        " localhost",
        "localhost ",
        "local host",
        "user@localhost",
        "localhost@evil.example",
        "localhost/",
        "localhost,evil.example",
        "::1",
        "[::1",
        "::1]",
        "[::1]x",
        "[localhost]",
    ];

    #[test]
    fn by_default_only_loopback_hosts_come_in() {
        let rules = HostRules::default();
        for good in [
            "localhost",
            "LocalHost:3000",
            "127.0.0.1",
            "127.0.0.1:65535",
            "127.255.3.4",
            "[::1]",
            "[::1]:80",
            "[0:0:0:0:0:0:0:1]:8080",
        ] {
            assert!(rules.allows(good.as_bytes()), "{good}");
        }
        for bad in [
            "evil.example",
            "localhost.evil.example",
            "evil.localhost",
            "127.0.0.1.evil.example",
            "128.0.0.1",
            "0.0.0.0",
            "127.1",
            "127.0.0.01",
            "2130706433",
            "0x7f.0.0.1",
            "[::]",
            "[::2]",
            "[::ffff:127.0.0.1]",
            "[::1%25lo]",
            "localhost\0",
        ] {
            assert!(!rules.allows(bad.as_bytes()), "{bad}");
        }
        for bad in GARBAGE_HOSTS {
            assert!(!rules.allows(bad.as_bytes()), "{bad}");
        }
        assert!(!rules.allows(b"localhost\xff"));
    }

    #[test]
    fn listed_hosts_match_in_any_case_and_on_the_listed_port() {
        let rules = HostRules::list([
            "MCP.example.com",
            "a.example:8443",
            "b.example:443",
            "[2001:DB8::1]",
        ])
        .unwrap();
        for good in [
            "mcp.EXAMPLE.com",
            "mcp.example.com:1",
            "a.example:8443",
            "b.example",
            "b.example:443",
            "[2001:db8::1]",
            "[2001:db8:0::1]:9",
        ] {
            assert!(rules.allows(good.as_bytes()), "{good}");
        }
        for bad in [
            "example.com",
            "x.mcp.example.com",
            "a.example",
            "a.example:443",
            "b.example:80",
            "localhost",
            "[::1]",
            "mcp.example.com.",
            "mcp.example.com@evil.example",
            "2001:db8::1",
            "",
        ] {
            assert!(!rules.allows(bad.as_bytes()), "{bad}");
        }
    }

    #[test]
    fn any_switches_the_checks_off() {
        assert!(HostRules::Any.allows(b"whatever \xff"));
    }

    #[test]
    fn garbage_is_no_rule() {
        for bad in GARBAGE_HOSTS.into_iter().chain([
            "*",
            "*.example.com",
            "https://a.example",
            "é.example",
        ]) {
            let error = HostRules::list(["good.example", bad]).unwrap_err();
            assert!(error.contains(&format!("`{bad}` is not a host")), "{error}");
        }
        for bad in [
            "",
            "*",
            "NULL",
            "a.example",
            "https://",
            "https://a.example/",
            "https://a.example/x",
            "https//a",
            "://a.example",
            "1x://a.example",
            "https://u@a.example",
            "https://a.example.",
            "https://*.example",
            "https://a.example https://b.example",
            "https://a.example:99999",
        ] {
            let error = OriginRules::list(["null", bad]).unwrap_err();
            assert!(error.contains(&format!("`{bad}` is not an origin")), "{error}");
        }
    }

    #[test]
    fn by_default_only_loopback_origins_come_in() {
        let rules = OriginRules::default();
        for good in [
            "http://localhost",
            "https://localhost:3000",
            "HTTP://LOCALHOST",
            "http://127.0.0.1:80",
            "http://127.9.9.9",
            "https://[::1]:8443",
        ] {
            assert!(rules.allows(good.as_bytes()), "{good}");
        }
        for bad in [
            "null",
            "",
            "localhost",
            "http://evil.example",
            "http://localhost.evil.example",
            "ftp://localhost",
            "http://localhost/",
            "http://localhost#",
            "http://u:p@localhost",
            "http://localhost http://evil.example",
            "http://localhost, http://evil.example",
            "http://evil.example#localhost",
            "http:localhost",
            " http://localhost",
            "http://localhost.",
            "http://::1",
            "file://",
            "http://[::1]]",
        ] {
            assert!(!rules.allows(bad.as_bytes()), "{bad}");
        }
    }

    #[test]
    fn listed_origins_match_after_normalising_case_and_default_port() {
        let rules = OriginRules::list([
            "HTTPS://App.Example.com:443",
            "http://b.example",
            "https://c.example:8443",
            "vscode-webview://0abc",
        ])
        .unwrap();
        for good in [
            "https://app.example.com",
            "https://APP.example.com:443",
            "http://b.example:80",
            "https://c.example:8443",
            "vscode-webview://0abc",
        ] {
            assert!(rules.allows(good.as_bytes()), "{good}");
        }
        for bad in [
            "http://app.example.com",
            "http://app.example.com:443",
            "https://app.example.com:80",
            "https://b.example",
            "https://c.example",
            "https://x.app.example.com",
            "https://app.example.com.evil.example",
            "null",
            "http://localhost",
            "https://app.example.com/",
        ] {
            assert!(!rules.allows(bad.as_bytes()), "{bad}");
        }
    }

    #[test]
    fn the_null_origin_comes_in_only_when_listed() {
        let rules = OriginRules::list(["null", "https://a.example"]).unwrap();
        assert!(rules.allows(b"null"));
        assert!(rules.allows(b"https://a.example"));
        assert!(!rules.allows(b"Null"));
        assert!(!OriginRules::list(["https://a.example"]).unwrap().allows(b"null"));
    }
}
