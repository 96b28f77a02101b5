//! PAGE, CACHE: lists and how long results may be kept.

use mcp_edge::{Limits, NoArgs, ResourceUri};

use super::*;

const LISTS: [(&str, &str, &str); 4] = [
    ("tools/list", "tools", "name"),
    ("prompts/list", "prompts", "name"),
    ("resources/list", "resources", "uri"),
    ("resources/templates/list", "resourceTemplates", "uriTemplate"),
];

async fn nothing(_: NoArgs) -> &'static str {
    ""
}

async fn reads(_: ResourceUri) -> &'static str {
    ""
}

/// Three of everything, one on a page.
fn paged() -> Client {
    let mut limits = Limits::default();
    limits.page_size = 1;
    let server = ["a", "b", "c"].into_iter().fold(builder().limits(limits), |server, name| {
        server
            .tool(name, "A tool", nothing)
            .prompt(name, "A prompt", nothing)
            .resource(format!("{name}:x"), name, nothing)
            .template(format!("{name}:{{id}}"), name, reads)
    });
    client(server)
}

async fn page(client: &Client, method: &str, cursor: Option<&Value>) -> Value {
    let params = cursor.map_or(json!({}), |cursor| json!({ "cursor": cursor }));
    client.round(method, params).await.unwrap().result().unwrap().clone()
}

#[tokio::test]
async fn page_01_and_02_all_four_lists_come_in_pages() {
    let client = paged();
    for (method, member, key) in LISTS {
        let (mut seen, mut cursor) = (Vec::new(), None);
        loop {
            let found = page(&client, method, cursor.as_ref()).await;
            let entries = found[member].as_array().unwrap();
            assert_eq!(entries.len(), 1, "{method}");
            seen.push(entries[0][key].as_str().unwrap()[..1].to_owned());
            cursor = found.get("nextCursor").cloned();
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, ["a", "b", "c"], "{method}");
        let empty = client.round(method, json!({ "cursor": "" })).await.unwrap();
        assert_eq!(empty.code(), Some(-32602), "the empty string is a cursor, not the first page");
    }
}

#[tokio::test]
async fn page_03_a_cursor_leads_to_the_same_page_again_and_elsewhere() {
    let client = paged();
    for (method, member, _) in LISTS {
        let cursor = page(&client, method, None).await["nextCursor"].clone();
        let second = page(&client, method, Some(&cursor)).await[member].clone();
        assert_eq!(page(&client, method, Some(&cursor)).await[member], second, "{method}");
        assert_eq!(page(&paged(), method, Some(&cursor)).await[member], second, "{method}");
    }
}

#[tokio::test]
async fn cache_09_nothing_is_kept_unless_the_author_says_so() {
    let client = paged();
    for (method, ..) in LISTS {
        let found = page(&client, method, None).await;
        assert_eq!((&found["ttlMs"], &found["cacheScope"]), (&json!(0), &json!("private")));
    }
    let found = client.discover().await.unwrap();
    assert_eq!((found.ttl_ms, found.cache_scope.as_str()), (0, "private"));
}

#[tokio::test]
async fn cache_10_other_results_say_nothing_of_caches() {
    let client = contract();
    let prompt = json!({ "type": "ref/prompt", "name": "greet" });
    for (method, params) in [
        ("tools/call", json!({ "name": "add", "arguments": { "a": 1, "b": 2 } })),
        ("tools/call", json!({ "name": "ask" })),
        ("prompts/get", json!({ "name": "greet", "arguments": { "name": "Ada" } })),
        ("resources/read", json!({ "uri": "test://asks" })),
        (
            "completion/complete",
            json!({ "ref": prompt, "argument": { "name": "name", "value": "" } }),
        ),
    ] {
        let reply = client.round(method, params).await.unwrap();
        let result = reply.result().unwrap();
        assert!(result.get("ttlMs").is_none() && result.get("cacheScope").is_none(), "{method}");
    }
}
