//! ERR: error codes.

use mcp_edge::{RequestError, ToolError};

use super::*;

#[tokio::test]
async fn err_02_to_05_an_application_cannot_send_a_reserved_code() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Code {
        code: i64,
    }
    let fail = |args: Code| async move {
        Err::<(), ToolError>(RequestError::application(args.code, "Mine").into())
    };
    let client = client(builder().tool("fail", "Fails", fail));
    for (code, sent) in [
        (7, 7),
        (-31_999, -31_999),
        (-32_769, -32_769),
        (-32_000, -32_603),
        (-32_002, -32_603),
        (-32_019, -32_603),
        (-32_020, -32_603),
        (-32_023, -32_603),
        (-32_042, -32_603),
        (-32_099, -32_603),
        (-32_700, -32_603),
        (-32_768, -32_603),
    ] {
        let params = json!({ "name": "fail", "arguments": { "code": code } });
        let reply = client.round("tools/call", params).await.unwrap();
        assert_eq!((reply.status.as_u16(), reply.code()), (200, Some(sent)), "{code}");
    }
}
