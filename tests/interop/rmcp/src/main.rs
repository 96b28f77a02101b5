//! The rmcp client against the everything server: one line for each check.
//!
//! usage: mcp-edge-interop-rmcp URL

use std::{
    collections::HashMap,
    env,
    error::Error,
    fmt::Debug,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData, RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig,
        ClientRequest, CompletionContext, ElicitRequestParams, ElicitResult, ElicitationAction,
        ElicitationCapability, FormElicitationCapability, GetPromptRequestParams, GetPromptResult,
        Implementation, ProgressNotificationParam, ProtocolVersion, ReadResourceRequestParams,
        ResourceContents, ServerNotification, ServerResult, SubscriptionFilter,
    },
    service::{
        NotificationContext, PeerRequestOptions, RequestContext, RequestHandle, RunningService,
        ServiceError, SubscriptionEnd,
    },
    transport::StreamableHttpClientTransport,
};
use serde_json::{Value, json};
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};

/// For one check.
const LIMIT: Duration = Duration::from_secs(15);

type Fallible<T> = Result<T, Box<dyn Error>>;
type Progress = (f64, Option<f64>, Option<String>);

/// Answers forms by the text that comes with them, and passes progress on.
struct User {
    answers: Mutex<HashMap<&'static str, Value>>,
    required: Mutex<Vec<Vec<String>>>,
    progress: mpsc::UnboundedSender<Progress>,
}

impl ClientHandler for User {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation =
            Some(ElicitationCapability::default().with_form(FormElicitationCapability::default()));
        ClientConfig::new(capabilities, Implementation::new("interop-rmcp", "1.0.0"))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = request
        else {
            return Ok(ElicitResult::new(ElicitationAction::Cancel));
        };
        let required = requested_schema.required.unwrap_or_default();
        locked(&self.required).push(required.iter().map(ToString::to_string).collect());
        Ok(match locked(&self.answers).get(&*message) {
            Some(content) => {
                ElicitResult::new(ElicitationAction::Accept).with_content(content.clone())
            }
            None => ElicitResult::new(ElicitationAction::Decline),
        })
    }

    async fn on_progress(
        &self,
        step: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let _ = self.progress.send((step.progress, step.total, step.message));
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Interop {
    client: RunningService<RoleClient, User>,
    progress: mpsc::UnboundedReceiver<Progress>,
}

impl Interop {
    async fn connect(url: &str) -> Fallible<Self> {
        let (sender, progress) = mpsc::unbounded_channel();
        let user = User { answers: Mutex::default(), required: Mutex::default(), progress: sender };
        let lifecycle = ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        };
        let transport = StreamableHttpClientTransport::from_uri(url);
        let client = user.serve_with_lifecycle(transport, lifecycle).await?;
        let server = client.peer_info().ok_or("no info about the server")?;
        equal(&server.protocol_version, &ProtocolVersion::V_2026_07_28)?;
        let name = server.server_info.as_ref().map(|info| info.name.as_str());
        equal(name, Some("everything"))?;
        Ok(Self { client, progress })
    }

    async fn list(&mut self) -> Fallible<()> {
        let tools = self.client.list_all_tools().await?;
        for name in ["hello", "add", "test_x_mcp_header", "json_schema_2020_12_tool"] {
            contains(tools.iter().map(|tool| &*tool.name), name)?;
        }
        let prompts = self.client.list_all_prompts().await?;
        contains(prompts.iter().map(|prompt| &*prompt.name), "test_prompt_with_arguments")?;
        let resources = self.client.list_all_resources().await?;
        contains(resources.iter().map(|resource| &*resource.name), "static-text")?;
        let templates = self.client.list_all_resource_templates().await?;
        contains(templates.iter().map(|template| &*template.name), "template")
    }

    async fn call(&mut self) -> Fallible<()> {
        let hello = self.tool("hello", json!({ "name": "Zoë" })).await?;
        equal(text(&hello)?, "Hello, Zoë!")?;
        let sum = self.tool("add", json!({ "a": 2, "b": 3 })).await?;
        equal(sum.structured_content, Some(json!({ "sum": 5 })))?;
        // The client mirrors this argument into a header, which has to carry it whole.
        for region in ["eu-west", " Zürich ", ""] {
            let answer = self.tool("test_x_mcp_header", json!({ "region": region })).await?;
            equal(text(&answer)?, format!("The region is {region}.").as_str())?;
        }
        equal(self.tool("test_error_handling", json!({})).await?.is_error, Some(true))?;
        refused(self.tool("no_such_tool", json!({})).await)
    }

    async fn resource(&mut self) -> Fallible<()> {
        let fixed = "This is the content of the static text resource.";
        equal(self.read("test://static-text").await?.as_str(), fixed)?;
        let png = self.read("test://static-binary").await?;
        equal(png.starts_with("iVBORw0KGgo"), true)?; // base64 of the signature of a PNG
        let from_template = self.read("test://template/a%20b/data").await?;
        let data: Value = serde_json::from_str(&from_template)?;
        equal(data["id"].as_str(), Some("a b"))?;
        let missing = ReadResourceRequestParams::new("test://nothing");
        refused(self.client.read_resource(missing).await)
    }

    async fn prompt(&mut self) -> Fallible<()> {
        let arguments = object(json!({ "arg1": "one", "arg2": "two" }))?;
        let params =
            GetPromptRequestParams::new("test_prompt_with_arguments").with_arguments(arguments);
        let prompt = self.client.get_prompt(params).await?;
        equal(message(&prompt)?, "Prompt with arguments: arg1='one', arg2='two'")
    }

    async fn completion(&mut self) -> Fallible<()> {
        let (prompt, template) = ("test_prompt_with_arguments", "test://template/{id}/data");
        let values = self.client.complete_prompt_simple(prompt, "arg1", "par").await?;
        equal(values, ["paris", "park", "party"].map(str::to_owned).to_vec())?;
        let known = HashMap::from([("arg1".to_owned(), "harbour".to_owned())]);
        let context = Some(CompletionContext::with_arguments(known));
        let completion = self.client.complete_prompt_argument(prompt, "arg2", "h", context).await?;
        equal(completion.values, ["harbour", "hello"].map(str::to_owned).to_vec())?;
        let values = self.client.complete_resource_simple(template, "id", "12").await?;
        equal(values, ["12", "123"].map(str::to_owned).to_vec())
    }

    async fn progress(&mut self) -> Fallible<()> {
        let running = self.start("test_tool_with_progress").await?;
        let ServerResult::CallToolResult(result) = running.await_response().await? else {
            return Err("not the result of a tool".into());
        };
        equal(text(&result)?, "The work is done.")?;
        for (done, message) in [(0.0, "Starting"), (50.0, "Half-way"), (100.0, "Done")] {
            let step = self.progress.recv().await.ok_or("the client has ended")?;
            equal(step, (done, Some(100.0), Some(message.to_owned())))?;
        }
        Ok(())
    }

    async fn elicitation(&mut self) -> Fallible<()> {
        let answers = &self.client.service().answers;
        *locked(answers) = HashMap::from([
            ("What is your name?", json!({ "name": "Ada" })),
            ("Step 1: What is your name?", json!({ "name": "Ada" })),
            ("Step 2: What is your favorite color?", json!({ "color": "green" })),
            ("What context should the prompt use?", json!({ "context": "tea" })),
        ]);
        let tool = "test_input_required_result_elicitation";
        equal(text(&self.tool(tool, json!({})).await?)?, "Hello, Ada!")?;
        equal(locked(&self.client.service().required).clone(), vec![vec!["name".to_owned()]])?;
        let rounds = self.tool("test_input_required_result_multi_round", json!({})).await?;
        equal(text(&rounds)?, "Ada likes green.")?;
        equal(locked(&self.client.service().required).len(), 3)?;
        let streamed = self.tool("test_streaming_elicitation", json!({})).await?;
        equal(text(&streamed)?, "Hello, Ada!")?;
        let asking = GetPromptRequestParams::new("test_input_required_result_prompt");
        let prompt = self.client.get_prompt(asking).await?;
        equal(message(&prompt)?, "Use this context: tea")?;
        locked(answers).remove("What is your name?"); // so it is declined
        equal(self.tool(tool, json!({})).await?.is_error, Some(true))
    }

    async fn listen(&mut self) -> Fallible<()> {
        let watched = "test://watched-resource";
        let filter =
            SubscriptionFilter::builder().tools_list_changed().resource_subscription(watched);
        let filter = filter.build();
        let mut changes = self.client.listen(filter.clone()).await?;
        equal(changes.acknowledged(), &filter)?;
        // What was not asked for stays away, so the tools are the first to come.
        self.tool("test_trigger_prompt_change", json!({})).await?;
        self.tool("test_trigger_tool_change", json!({})).await?;
        let first = changes.next().await?;
        let Some(ServerNotification::ToolListChangedNotification(_)) = first else {
            return Err(format!("the first change is {first:?}").into());
        };
        self.tool("test_touch_watched_resource", json!({})).await?;
        let second = changes.next().await?;
        let Some(ServerNotification::ResourceUpdatedNotification(updated)) = second else {
            return Err(format!("the second change is {second:?}").into());
        };
        equal(updated.params.uri.as_str(), watched)?;
        changes.cancel().await?;
        equal(changes.end(), Some(&SubscriptionEnd::Cancelled))?;
        self.tool("test_trigger_tool_change", json!({})).await?;
        Ok(())
    }

    async fn cancel(&mut self) -> Fallible<()> {
        while self.progress.try_recv().is_ok() {} // what earlier checks left
        let running = self.start("test_tool_with_progress").await?;
        let (first, ..) = self.progress.recv().await.ok_or("the client has ended")?;
        equal(first, 0.0)?;
        running.cancel(Some("enough".to_owned())).await?;
        sleep(Duration::from_millis(300)).await; // longer than the tool would have worked
        while let Ok((done, ..)) = self.progress.try_recv() {
            equal(done < 100.0, true)?; // else it worked to its end
        }
        let hello = self.tool("hello", json!({ "name": "Ada" })).await?;
        equal(text(&hello)?, "Hello, Ada!")
    }

    async fn tool(
        &self,
        name: &'static str,
        arguments: Value,
    ) -> Result<CallToolResult, ServiceError> {
        let mut params = CallToolRequestParams::new(name);
        params.arguments = arguments.as_object().cloned();
        self.client.call_tool(params).await
    }

    /// Begins a call and does not wait for its end. The client draws a progress token for each.
    async fn start(&self, name: &'static str) -> Result<RequestHandle<RoleClient>, ServiceError> {
        let request =
            ClientRequest::CallToolRequest(CallToolRequest::new(CallToolRequestParams::new(name)));
        self.client.send_cancellable_request(request, PeerRequestOptions::no_options()).await
    }

    /// The text, or the bytes in base64.
    async fn read(&self, uri: &str) -> Fallible<String> {
        let result = self.client.read_resource(ReadResourceRequestParams::new(uri)).await?;
        match result.contents.into_iter().next() {
            Some(ResourceContents::TextResourceContents { text, .. }) => Ok(text),
            Some(ResourceContents::BlobResourceContents { blob, .. }) => Ok(blob),
            _ => Err("no contents".into()),
        }
    }
}

fn object(value: Value) -> Fallible<serde_json::Map<String, Value>> {
    value.as_object().cloned().ok_or_else(|| "not an object".into())
}

fn text(result: &CallToolResult) -> Fallible<&str> {
    let text = result.content.first().and_then(|block| block.as_text());
    Ok(&text.ok_or("no text")?.text)
}

fn message(prompt: &GetPromptResult) -> Fallible<&str> {
    let text = prompt.messages.first().and_then(|message| message.content.as_text());
    Ok(&text.ok_or("no text")?.text)
}

fn equal<T: PartialEq + Debug>(got: T, wanted: T) -> Fallible<()> {
    if got == wanted { Ok(()) } else { Err(format!("got {got:?}, wanted {wanted:?}").into()) }
}

fn contains<'a>(names: impl Iterator<Item = &'a str>, name: &str) -> Fallible<()> {
    let names = names.collect::<Vec<_>>();
    if names.contains(&name) { Ok(()) } else { Err(format!("no {name} in {names:?}").into()) }
}

fn refused<T: Debug>(result: Result<T, ServiceError>) -> Fallible<()> {
    match result {
        Err(ServiceError::McpError(error)) => equal(error.code.0, -32602),
        other => Err(format!("no refusal: {other:?}").into()),
    }
}

async fn report(name: &str, check: impl Future<Output = Fallible<()>>) {
    let result = timeout(LIMIT, check).await.unwrap_or_else(|late| Err(late.into()));
    match result {
        Ok(()) => println!("ok {name}"),
        Err(error) => {
            println!(
                "FAIL {name}: {}",
                error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
            )
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Fallible<()> {
    let url = env::args().nth(1).ok_or("usage: mcp-edge-interop-rmcp URL")?;
    let mut interop = match timeout(LIMIT, Interop::connect(&url)).await? {
        Ok(interop) => interop,
        Err(error) => {
            println!("FAIL connect: {error}");
            return Ok(());
        }
    };
    println!("ok connect");
    report("list", interop.list()).await;
    report("call", interop.call()).await;
    report("resource", interop.resource()).await;
    report("prompt", interop.prompt()).await;
    report("completion", interop.completion()).await;
    report("progress", interop.progress()).await;
    report("elicitation", interop.elicitation()).await;
    report("listen", interop.listen()).await;
    report("cancel", interop.cancel()).await;
    timeout(LIMIT, interop.client.cancel()).await??;
    Ok(())
}
