//! What a server offers of one kind: looked up by key, and listed page by page.

use std::{collections::HashMap, sync::Arc, time::Duration};

use serde::Serialize;

use crate::{
    canonical,
    platform::Platform,
    principal::Principal,
    provider::{Provided, Provider},
    rejection::Rejection,
    server::Server,
    token::{self, Binding},
};

/// How long and by whom a result may be cached (CACHE-01 to CACHE-09).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheHints {
    /// For how long, on the wire in milliseconds. Zero means not at all.
    pub ttl: Duration,
    /// By whom.
    pub scope: CacheScope,
}

/// Who may keep a result (CACHE-03, CACHE-07).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "the specification names exactly these two")]
pub enum CacheScope {
    /// The caller alone.
    #[default]
    Private,
    /// Anybody, across tokens too.
    Public,
}

impl CacheHints {
    /// The caller may keep it for `ttl`.
    #[must_use]
    pub const fn private(ttl: Duration) -> Self {
        Self { ttl, scope: CacheScope::Private }
    }

    /// Anybody may keep it for `ttl`, also when it was fetched with authentication (CACHE-07).
    #[must_use]
    pub const fn public(ttl: Duration) -> Self {
        Self { ttl, scope: CacheScope::Public }
    }

    /// The two members on the wire, with a comma before them.
    pub(crate) fn members(self) -> String {
        let ttl = u64::try_from(self.ttl.as_millis()).unwrap_or(u64::MAX);
        let scope = match self.scope {
            CacheScope::Private => "private",
            CacheScope::Public => "public",
        };
        format!(r#","ttlMs":{ttl},"cacheScope":"{scope}""#)
    }
}

/// One of the lists that a server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum List {
    /// `prompts/list`
    Prompts,
    /// `resources/list`
    Resources,
    /// `resources/templates/list`
    ResourceTemplates,
    /// `tools/list`
    Tools,
}

impl List {
    const fn method(self) -> &'static str {
        match self {
            Self::Prompts => "prompts/list",
            Self::Resources => "resources/list",
            Self::ResourceTemplates => "resources/templates/list",
            Self::Tools => "tools/list",
        }
    }

    const fn member(self) -> &'static str {
        match self {
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::ResourceTemplates => "resourceTemplates",
            Self::Tools => "tools",
        }
    }
}

/// Who asks for a list, and where.
#[derive(Clone, Copy)]
pub(crate) struct Asker<'a> {
    pub(crate) server: &'a Server,
    pub(crate) platform: &'a dyn Platform,
    pub(crate) principal: &'a Principal,
}

/// Begins a cursor that is the last key of a page of definitions.
const DEFINED: &str = "d";

/// Begins a cursor that is the provider's.
const PROVIDED: &str = "p";

/// What a server offers of one kind, in the order in which it was defined (TOOL-04).
#[derive(Debug)]
pub(crate) struct Catalogue<T> {
    entries: Vec<T>,
    keys: Vec<String>,
    index: HashMap<String, usize>,
    list: StaticList,
}

/// A list as bytes, made once when the server is built.
#[derive(Debug)]
struct StaticList {
    list: List,
    /// The definitions, as JSON.
    items: Vec<Vec<u8>>,
    /// What stands after the items of a page: caching hints, and the end of the object.
    tail: Vec<u8>,
    page_size: usize,
    /// The whole result, if it fits on one page.
    single: Option<Vec<u8>>,
    /// Tells apart what cursors were given out for.
    digest: [u8; 32],
}

impl<T> Catalogue<T> {
    /// Makes a catalogue of entries with their keys and definitions. `end` closes a result.
    ///
    /// # Errors
    /// The keys that occur twice.
    pub(crate) fn new<D: Serialize>(
        list: List,
        entries: Vec<(String, D, T)>,
        hints: CacheHints,
        page_size: usize,
        end: &[u8],
    ) -> Result<Self, Vec<String>> {
        let mut index = HashMap::with_capacity(entries.len());
        let mut duplicates = Vec::new();
        let (mut keys, mut items, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for (key, definition, entry) in entries {
            if index.insert(key.clone(), keys.len()).is_some() {
                duplicates.push(key.clone());
            }
            keys.push(key);
            // A definition is plain data with string keys, so writing it cannot fail.
            items.push(serde_json::to_vec(&definition).unwrap_or_default());
            values.push(entry);
        }
        if !duplicates.is_empty() {
            return Err(duplicates);
        }
        let mut tail = hints.members().into_bytes();
        tail.extend_from_slice(end);
        let digest = {
            let parts: Vec<&[u8]> = items.iter().map(Vec::as_slice).collect();
            canonical::digest(&parts)
        };
        let mut list = StaticList { list, items, tail, page_size, single: None, digest };
        if list.items.len() <= page_size {
            let items: Vec<&[u8]> = list.items.iter().map(Vec::as_slice).collect();
            list.single = Some(list.page(&items, None));
        }
        Ok(Self { entries: values, keys, index, list })
    }

    pub(crate) fn get(&self, key: &str) -> Option<&T> {
        self.index.get(key).map(|position| &self.entries[*position])
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter()
    }

    /// The result of a list request: the page after `cursor`, or the first one (PAGE-01). What was
    /// defined comes first, then what `provider` has.
    ///
    /// # Errors
    /// When the cursor does not belong to this list and caller (PAGE-04, PAGE-07), or what the
    /// provider answered with.
    pub(crate) async fn page<P: Provided + 'static>(
        &self,
        asker: Asker<'_>,
        provider: Option<&Arc<dyn Provider<P>>>,
        cursor: Option<&str>,
    ) -> Result<Vec<u8>, Rejection> {
        let list = &self.list;
        if let (None, Some(single), None) = (cursor, &list.single, provider) {
            return Ok(single.clone());
        }
        let Asker { server, platform, principal } = asker;
        let binding = Binding {
            purpose: "cursor",
            principal,
            method: list.list.method(),
            name: &list.digest,
            arguments: [0; 32],
        };
        // PAGE-02: the empty string is a cursor, though never one of ours.
        let opened = match cursor {
            None => None,
            Some(cursor) => Some(token::open_cursor(cursor, server, binding).await?),
        };
        // A cursor is the last key that was defined, or where the provider goes on.
        let (start, after) = match opened.as_deref().map(|cursor| cursor.split_at_checked(1)) {
            None => (0, None),
            Some(Some((DEFINED, key))) => (self.index.get(key).map_or(0, |at| at + 1), None),
            Some(Some((_, after))) => (list.items.len(), Some(after)),
            Some(None) => return Err(token::bad_cursor()),
        };
        let end = start.saturating_add(list.page_size).min(list.items.len());
        let room = list.page_size - (end - start);
        let mut items: Vec<&[u8]> = list.items[start..end].iter().map(Vec::as_slice).collect();
        let more = match provider {
            Some(provider) if end == list.items.len() && room > 0 => {
                let more = provider.list(principal, after, room).await;
                Some(more.map_err(Rejection::Failed)?)
            }
            _ => None,
        };
        let next = match (&more, self.keys.get(end.wrapping_sub(1))) {
            (Some(more), _) => more.next.as_ref().map(|next| format!("{PROVIDED}{next}")),
            (None, Some(key)) if end < list.items.len() || provider.is_some() => {
                Some(format!("{DEFINED}{key}"))
            }
            (None, _) => None,
        };
        items.extend(more.iter().flat_map(|more| more.items.iter().map(Provided::json)));
        let next = match next {
            Some(next) => Some(token::seal_cursor(&next, server, platform, binding).await?),
            None => None,
        };
        Ok(list.page(&items, next.as_deref()))
    }
}

impl StaticList {
    fn page(&self, items: &[&[u8]], next: Option<&str>) -> Vec<u8> {
        let size: usize = items.iter().map(|item| item.len() + 1).sum();
        let mut out = Vec::with_capacity(size + self.tail.len() + 512);
        out.extend_from_slice(b"{\"");
        out.extend_from_slice(self.list.member().as_bytes());
        out.extend_from_slice(b"\":[");
        for (position, item) in items.iter().enumerate() {
            if position > 0 {
                out.push(b',');
            }
            out.extend_from_slice(item);
        }
        out.push(b']');
        if let Some(next) = next {
            // base64url needs no escapes.
            out.extend_from_slice(b",\"nextCursor\":\"");
            out.extend_from_slice(next.as_bytes());
            out.push(b'"');
        }
        out.extend_from_slice(&self.tail);
        out
    }
}
