//! The grammars of names: `_meta` keys, extension ids, tool names.

/// Whether `key` may be used in `_meta` (META-10).
///
/// The grammar lets the name be empty, with or without a prefix, so `com.example/` and the empty
/// string pass.
pub(crate) fn is_meta_key(key: &str) -> bool {
    match key.split_once('/') {
        Some((prefix, name)) => is_prefix(prefix) && is_meta_name(name),
        None => is_meta_name(key),
    }
}

/// Whether the prefix of `key` belongs to the protocol, so that nobody else may define it
/// (META-12).
///
/// Prefixes are domain names, which have no case: a key that differs in case alone is reserved too.
pub(crate) fn is_reserved_meta_key(key: &str) -> bool {
    let Some((prefix, _)) = key.split_once('/') else { return false };
    prefix.split('.').nth(1).is_some_and(|label| {
        label.eq_ignore_ascii_case("mcp") || label.eq_ignore_ascii_case("modelcontextprotocol")
    })
}

/// Whether `id` can name an extension: a `_meta` key with a prefix and a name (EXT-02).
///
/// Unlike a `_meta` key an id needs its name: `com.example/` would name the vendor, not an
/// extension.
pub(crate) fn is_extension_id(id: &str) -> bool {
    id.split_once('/')
        .is_some_and(|(prefix, name)| is_prefix(prefix) && !name.is_empty() && is_meta_name(name))
}

/// Whether `name` can name a tool (TOOL-06).
pub(crate) fn is_tool_name(name: &str) -> bool {
    (1..=128).contains(&name.len()) && name.bytes().all(is_word)
}

fn is_prefix(prefix: &str) -> bool {
    prefix.split('.').all(|label| {
        let bytes = label.as_bytes();
        bytes.first().is_some_and(u8::is_ascii_alphabetic)
            && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
            && bytes.iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'-')
    })
}

fn is_meta_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return true };
    first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric() && name.bytes().all(is_word)
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meta_keys_follow_the_grammar() {
        for good in [
            "progressToken",
            "a",
            "9-_.z",
            "com.example/key",
            "io.modelcontextprotocol/protocolVersion",
            "x/1",
            "a-b.c9/name",
            "com.example/",
            "",
        ] {
            assert!(is_meta_key(good), "{good}");
        }
        for bad in [
            "-a",
            "a-",
            "a b",
            "é",
            "/a",
            "1com.example/a",
            "com..example/a",
            "com.example-/a",
            "-com/a",
            "com.ex_ample/a",
            "com.example/a/b",
            "com.example/.a",
            ".com/a",
            "com./a",
        ] {
            assert!(!is_meta_key(bad), "{bad}");
        }
    }

    #[test]
    fn the_second_label_reserves_a_prefix() {
        for reserved in [
            "io.modelcontextprotocol/x",
            "dev.mcp/x",
            "com.mcp.tools/x",
            "org.modelcontextprotocol.api/",
            "io.ModelContextProtocol/x",
        ] {
            assert!(is_reserved_meta_key(reserved), "{reserved}");
        }
        for free in ["com.example.mcp/x", "mcp/x", "mcp", "io.mcp", "com.mcp-tools/x", "a.b/io.mcp"]
        {
            assert!(!is_reserved_meta_key(free), "{free}");
        }
    }

    #[test]
    fn an_extension_id_needs_prefix_and_name() {
        assert!(is_extension_id("io.modelcontextprotocol/tasks"));
        assert!(is_extension_id("example/quota"));
        for bad in ["tasks", "com.example/", "/tasks", "com.example/a/b", "com.example/-a", ""] {
            assert!(!is_extension_id(bad), "{bad}");
        }
    }

    #[test]
    fn tool_names_are_short_words() {
        let longest = "a".repeat(128);
        for good in ["a", "get_weather.v2-beta", "-", longest.as_str()] {
            assert!(is_tool_name(good), "{good}");
        }
        let longer = "a".repeat(129);
        for bad in ["", "a b", "a/b", "é", "a,b", longer.as_str()] {
            assert!(!is_tool_name(bad), "{bad}");
        }
    }
}
