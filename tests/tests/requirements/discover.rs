//! DISC: server/discover.

use mcp_edge::{InProcessFeed, NoArgs, Vars};

use super::*;

async fn nothing(_: NoArgs) -> &'static str {
    ""
}

async fn reads(_: Vars<std::collections::BTreeMap<String, String>>) -> &'static str {
    ""
}

#[tokio::test]
async fn disc_02_other_params_and_a_name_are_tolerated() {
    let client = contract();
    let request = client.request("server/discover", json!({ "cursor": "x", "extra": [1] }));
    let (status, answer) = send(&client, header(request, "mcp-name", Some("whatever"))).await;
    assert_eq!((status.as_u16(), &answer["result"]["resultType"]), (200, &json!("complete")));
}

#[tokio::test]
async fn disc_03_these_are_its_members_and_no_others() {
    let reply = contract().round("server/discover", json!({})).await.unwrap();
    let mut members: Vec<_> = reply.result().unwrap().as_object().unwrap().keys().collect();
    members.sort_unstable();
    assert_eq!(
        members,
        [
            "_meta",
            "cacheScope",
            "capabilities",
            "instructions",
            "resultType",
            "supportedVersions",
            "ttlMs"
        ]
    );
}

#[tokio::test]
async fn disc_07_what_is_advertised_is_what_is_served() {
    let with_completion = |builder: ServerBuilder| {
        builder.prompt_with(
            "p",
            "A prompt",
            |_: Text| async { "" },
            |prompt| prompt.complete_values("text", ["a"]),
        )
    };
    let listed = json!({ "listChanged": true });
    for (builder, quiet, live) in [
        (builder(), json!({}), json!({})),
        (builder().logging(), json!({ "logging": {} }), json!({ "logging": {} })),
        (
            builder().tool("t", "A tool", nothing),
            json!({ "tools": {} }),
            json!({ "tools": listed }),
        ),
        (
            builder().prompt("p", "A prompt", nothing),
            json!({ "prompts": {} }),
            json!({ "prompts": listed }),
        ),
        (
            builder().resource("a:b", "r", nothing),
            json!({ "resources": {} }),
            json!({ "resources": { "listChanged": true, "subscribe": true } }),
        ),
        (
            builder().template("a:{id}", "t", reads),
            json!({ "resources": {} }),
            json!({ "resources": { "listChanged": true, "subscribe": true } }),
        ),
        (
            with_completion(builder()),
            json!({ "prompts": {}, "completions": {} }),
            json!({ "prompts": listed, "completions": {} }),
        ),
    ] {
        let server = builder.build().unwrap();
        let found = Client::in_process(&server).discover().await.unwrap();
        assert_eq!(found.capabilities, quiet);
        let server = server.with_change_feed(InProcessFeed::default());
        let found = Client::in_process(&server).discover().await.unwrap();
        assert_eq!(found.capabilities, live);
    }
}
