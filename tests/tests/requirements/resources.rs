//! RES: resources.

use mcp_edge::{Cx, NoArgs, RequestError, Vars, protocol::ResourceContents};

use super::*;

#[derive(serde::Deserialize)]
struct Path {
    path: String,
}

async fn file(Vars(file): Vars<Path>) -> String {
    file.path
}

async fn code(client: &Client, uri: &str) -> (u16, Option<i64>) {
    let reply = client.round("resources/read", json!({ "uri": uri })).await.unwrap();
    (reply.status.as_u16(), reply.code())
}

#[tokio::test]
async fn res_02_resources_are_listed_also_where_there_are_templates_alone() {
    let client = client(builder().template("file:///srv/{+path}", "files", file));
    assert!(client.list_resources().await.unwrap().is_empty());
    assert_eq!(client.list_templates().await.unwrap().len(), 1);
}

#[tokio::test]
async fn res_08_and_09_absence_is_an_error_and_so_is_a_fault() {
    let server = builder()
        .resource("a:none", "none", |_: NoArgs| async { Vec::<ResourceContents>::new() })
        .resource("a:fault", "fault", |_: NoArgs| async {
            Ok::<_, RequestError>("x".parse::<u8>()?.to_string())
        });
    let client = client(server);
    assert_eq!(code(&client, "a:none").await, (200, Some(-32602)));
    let reply = client.round("resources/read", json!({ "uri": "a:fault" })).await.unwrap();
    assert_eq!(reply.error(), Some(&json!({ "code": -32603, "message": "Internal error" })));
}

#[tokio::test]
async fn res_11_a_path_cannot_leave_its_template() {
    let client = client(builder().template("file:///srv/{+path}", "files", file));
    assert_eq!(client.read("file:///srv/a/b.txt").await.unwrap().text(), "a/b.txt");
    for path in [
        "../etc/passwd",
        "a/../../etc/passwd",
        "a/./b",
        "%2e%2e/etc/passwd",
        "..%2fetc/passwd",
        "a%5c..%5cb",
        "/etc/passwd",
        "a%00.txt",
        "%ff",
    ] {
        let uri = format!("file:///srv/{path}");
        assert_eq!(code(&client, &uri).await, (200, Some(-32602)), "{uri}");
    }
    assert_eq!(code(&client, "file:///etc/passwd").await, (200, Some(-32602)));
}

#[tokio::test]
async fn res_13_a_handler_decides_by_who_reads() {
    let secret = |cx: Cx, _: NoArgs| async move {
        match cx.principal().subject.as_str() {
            "" => Err(RequestError::not_found("a:secret")),
            subject => Ok(format!("for {subject}")),
        }
    };
    let client = client(builder().resource("a:secret", "secret", secret));
    assert_eq!(code(&client, "a:secret").await, (200, Some(-32602)), "this caller is anonymous");
}
