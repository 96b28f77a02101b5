//! URI references, as `$id` and `$ref` use them (RFC 3986, section 5).

/// Splits off the fragment.
pub(super) fn split_fragment(reference: &str) -> (&str, &str) {
    reference.split_once('#').unwrap_or((reference, ""))
}

/// Resolves a reference without a fragment. A document without a base of its own has the base "".
pub(super) fn resolve(base: &str, reference: &str) -> String {
    let (base, reference) = (Parts::of(base), Parts::of(reference));
    let merged;
    let parts = if !reference.scheme.is_empty() {
        reference
    } else if !reference.authority.is_empty() {
        Parts { scheme: base.scheme, ..reference }
    } else if reference.path.is_empty() {
        let query = if reference.query.is_empty() { base.query } else { reference.query };
        Parts { query, ..base }
    } else if reference.path.starts_with('/') {
        Parts { path: reference.path, query: reference.query, ..base }
    } else {
        let folder = match base.path.rfind('/') {
            Some(slash) => &base.path[..=slash],
            None if base.authority.is_empty() => "",
            None => "/",
        };
        merged = [folder, reference.path].concat();
        Parts { path: &merged, query: reference.query, ..base }
    };
    [parts.scheme, parts.authority, &without_dots(parts.path), parts.query].concat()
}

/// A URI in pieces, each with the character that marks it, that make the whole again.
struct Parts<'a> {
    scheme: &'a str,
    authority: &'a str,
    path: &'a str,
    query: &'a str,
}

impl<'a> Parts<'a> {
    fn of(uri: &'a str) -> Self {
        let (scheme, rest) = match uri.find([':', '/', '?']) {
            Some(end) if end > 0 && uri[end..].starts_with(':') => uri.split_at(end + 1),
            _ => ("", uri),
        };
        let (hierarchy, query) = rest.split_at(rest.find('?').unwrap_or(rest.len()));
        let (authority, path) = match hierarchy.strip_prefix("//") {
            Some(rest) => hierarchy.split_at(rest.find('/').map_or(hierarchy.len(), |at| at + 2)),
            None => ("", hierarchy),
        };
        Self { scheme, authority, path, query }
    }
}

/// Resolves `.` and `..`.
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').peekable();
    while let Some(segment) = segments.next() {
        match segment {
            // Not above the root, which is the empty segment before the first slash.
            ".." if kept.len() > 1 || kept.first().is_some_and(|first| !first.is_empty()) => {
                kept.pop();
            }
            "." | ".." => {}
            _ => {
                kept.push(segment);
                continue;
            }
        }
        // A folder stays one.
        if segments.peek().is_none() {
            kept.push("");
        }
    }
    kept.join("/")
}

/// Adds a token to a JSON pointer.
pub(super) fn push_token(pointer: &mut String, token: &str) {
    pointer.push('/');
    for char in token.chars() {
        match char {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_resolve_as_in_rfc_3986() {
        let base = "http://a/b/c/d;p?q";
        for (reference, uri) in [
            ("g:h", "g:h"),
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            (";x", "http://a/b/c/;x"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("./", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../..", "http://a/"),
            ("../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
            ("/../g", "http://a/g"),
            ("g.", "http://a/b/c/g."),
            ("..g", "http://a/b/c/..g"),
            ("./../g", "http://a/b/g"),
            ("g;x=1/../y", "http://a/b/c/y"),
        ] {
            assert_eq!(resolve(base, reference), uri, "{reference}");
        }
        assert_eq!(resolve("", "item"), "item");
        assert_eq!(resolve("tree", "item"), "item");
        assert_eq!(resolve("http://a", "item"), "http://a/item");
        assert_eq!(resolve("urn:uuid:1", ""), "urn:uuid:1");
        assert_eq!(resolve("urn:uuid:1", "urn:a:b?+x"), "urn:a:b?+x");
    }
}
