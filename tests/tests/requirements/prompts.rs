//! PROMPT: prompts.

use mcp_edge::RequestError;

use super::*;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Args {
    count: u8,
}

async fn prompt(args: Args) -> Result<String, RequestError> {
    match args.count {
        0 => Err("x".parse::<u8>().unwrap_err().into()),
        count => Ok(count.to_string()),
    }
}

#[tokio::test]
async fn prompt_05_and_06_arguments_are_checked_and_faults_are_internal() {
    let client = client(builder().prompt("p", "A prompt", prompt));
    for (count, code, message) in
        [("300", -32602, None), ("many", -32602, None), ("0", -32603, Some("Internal error"))]
    {
        let params = json!({ "name": "p", "arguments": { "count": count } });
        let reply = client.round("prompts/get", params).await.unwrap();
        assert_eq!((reply.status.as_u16(), reply.code()), (200, Some(code)), "{count}");
        if let Some(message) = message {
            assert_eq!(reply.error().unwrap()["message"], message, "ERR-08");
        }
    }
    assert!(client.get_prompt("p", json!({ "count": "3" })).await.is_ok());
}
