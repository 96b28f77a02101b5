//! What a client does with a server.

use mcp_edge::protocol::{
    Completion, Prompt, PromptResult, Resource, ResourceTemplate, Tool, ToolResult,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    answers::Question,
    called::{Called, Discovered, ReadResult},
    client::{Client, Options},
    error::{CallError, Fault},
    exchange::Exchange,
    follow::Following,
    reply::Reply,
};

impl Client {
    /// Calls a tool, and answers its questions until it is done; a call that becomes a task is
    /// [followed](Self::follow).
    ///
    /// `arguments` is anything that serialises to an object, or `()` for none. A result that says
    /// `isError` is a result.
    ///
    /// ```
    /// use mcp_edge::{Json, Server};
    /// use mcp_edge_test::Client;
    /// use serde_json::json;
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Add { a: i64, b: i64 }
    ///
    /// #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    /// struct Sum { sum: i64 }
    ///
    /// async fn add(args: Add) -> Json<Sum> {
    ///     Json(Sum { sum: args.a + args.b })
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Server::builder("math", "1.0.0").tool("add", "Adds", add).build()?;
    /// let called = Client::in_process(&server).call("add", json!({"a": 2, "b": 3})).await?;
    /// assert_eq!(called.structured::<Sum>()?.sum, 5);
    /// assert!(!called.is_error());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the server answers with an error, or with something that a conforming client refuses;
    /// when a question has no answer; when no answer arrives.
    pub async fn call(&self, tool: &str, arguments: impl Serialize) -> Result<Called, CallError> {
        self.finish::<ToolResult>("tools/call", tool_params(tool, arguments)?).await
    }

    /// Gets a prompt with its arguments filled in, and answers its questions.
    ///
    /// # Errors
    /// As for [`call`](Self::call).
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: impl Serialize,
    ) -> Result<Called<PromptResult>, CallError> {
        let mut params = json!({ "name": name });
        put(&mut params, "arguments", arguments)?;
        self.finish("prompts/get", params).await
    }

    /// Reads a resource, and answers its questions.
    ///
    /// # Errors
    /// As for [`call`](Self::call).
    pub async fn read(&self, uri: &str) -> Result<Called<ReadResult>, CallError> {
        self.finish("resources/read", json!({ "uri": uri })).await
    }

    /// Asks for suggestions for an argument of a prompt.
    ///
    /// # Errors
    /// As for [`call`](Self::call).
    pub async fn complete_prompt(
        &self,
        prompt: &str,
        argument: &str,
        value: &str,
    ) -> Result<Completion, CallError> {
        self.complete(json!({ "type": "ref/prompt", "name": prompt }), argument, value).await
    }

    /// Asks for suggestions for a variable of a resource template.
    ///
    /// # Errors
    /// As for [`call`](Self::call).
    pub async fn complete_template(
        &self,
        uri: &str,
        argument: &str,
        value: &str,
    ) -> Result<Completion, CallError> {
        self.complete(json!({ "type": "ref/resource", "uri": uri }), argument, value).await
    }

    /// Lists all tools, page by page.
    ///
    /// # Errors
    /// As for [`call`](Self::call).
    pub async fn list_tools(&self) -> Result<Vec<Tool>, CallError> {
        self.list("tools/list", "tools").await
    }

    /// Lists the tools to know which of their arguments travel in headers as well (`x-mcp-header`).
    /// Calls of such tools fail without.
    ///
    /// # Errors
    /// As for [`call`](Self::call).
    pub async fn learn_tools(&self) -> Result<(), CallError> {
        self.list_tools().await.map(drop)
    }

    /// Lists all prompts, page by page.
    ///
    /// # Errors
    /// As for [`call`](Self::call).
    pub async fn list_prompts(&self) -> Result<Vec<Prompt>, CallError> {
        self.list("prompts/list", "prompts").await
    }

    /// Lists all resources, page by page.
    ///
    /// # Errors
    /// As for [`call`](Self::call).
    pub async fn list_resources(&self) -> Result<Vec<Resource>, CallError> {
        self.list("resources/list", "resources").await
    }

    /// Lists all resource templates, page by page.
    ///
    /// # Errors
    /// As for [`call`](Self::call).
    pub async fn list_templates(&self) -> Result<Vec<ResourceTemplate>, CallError> {
        self.list("resources/templates/list", "resourceTemplates").await
    }

    /// Asks what the server offers.
    ///
    /// # Errors
    /// As for [`call`](Self::call).
    pub async fn discover(&self) -> Result<Discovered, CallError> {
        let reply = self.round("server/discover", Value::Null).await?;
        typed(&reply, reply.outcome()?.clone())
    }

    async fn complete(
        &self,
        reference: Value,
        argument: &str,
        value: &str,
    ) -> Result<Completion, CallError> {
        let argument = json!({ "name": argument, "value": value });
        let params = json!({ "ref": reference, "argument": argument });
        let reply = self.round("completion/complete", params).await?;
        typed(&reply, reply.outcome()?["completion"].clone())
    }

    /// All entries of a list.
    async fn list<T: DeserializeOwned>(
        &self,
        method: &str,
        member: &str,
    ) -> Result<Vec<T>, CallError> {
        let (mut entries, mut params, mut scope) = (Vec::new(), json!({}), None);
        loop {
            let reply = self.round(method, params.clone()).await?;
            let page = reply.outcome()?;
            entries.append(&mut typed::<Vec<T>>(&reply, page[member].clone())?);
            if method == "tools/list" {
                self.learn(&page[member]);
            }
            if *scope.get_or_insert_with(|| page["cacheScope"].clone()) != page["cacheScope"] {
                return Err(reply.refused("the pages differ in cacheScope (PAGE-06)"));
            }
            let Some(cursor) = page.get("nextCursor") else {
                return Ok(entries);
            };
            if params.get("cursor") == Some(cursor) {
                return Err(reply.refused("a page names itself as the next one"));
            }
            params["cursor"] = cursor.clone();
        }
    }

    fn learn(&self, tools: &Value) {
        let mut known = self.shared.tools();
        for tool in tools.as_array().into_iter().flatten() {
            if let Some(name) = tool["name"].as_str() {
                known.insert(name.to_owned(), tool["inputSchema"].clone());
            }
        }
    }

    /// Goes from round to round, and on with the task if there is one, until there is a result.
    async fn finish<R: DeserializeOwned>(
        &self,
        method: &str,
        params: Value,
    ) -> Result<Called<R>, CallError> {
        let (reply, path) = self.ask(method, params).await?;
        if let Some(task) = reply.task() {
            return Following::new(self, task, path, Some(reply.exchange)).finish().await;
        }
        let raw = reply.outcome()?.clone();
        Ok(path.called(typed(&reply, raw.clone())?, raw))
    }

    /// Goes from round to round until there is a result or a task.
    pub(crate) async fn ask(
        &self,
        method: &str,
        params: Value,
    ) -> Result<(Reply, Path), CallError> {
        let mut path = Path::default();
        let mut reply = self.round(method, params).await?;
        loop {
            path.notifications.append(&mut reply.notifications);
            reply.outcome()?;
            if !reply.is_input_required() {
                return Ok((reply, path));
            }
            path.may_go_on(&self.options, [&reply.exchange])?;
            let questions = reply.input_requests();
            if self.options.strict {
                self.replay(&reply, &questions).await?;
            }
            let answers = match self.options.answers.to(&questions) {
                // Only called again, with nothing but the state (MRTR-23).
                _ if questions.is_empty() => Value::Null,
                Ok(answers) => answers,
                Err(question) => return Err(unanswered(question, [&reply.exchange])),
            };
            path.rounds.push(questions);
            reply = self.retry(&reply, answers).await?;
        }
    }
}

/// What happened on the way to a result.
#[derive(Debug, Default)]
pub(crate) struct Path {
    notifications: Vec<Value>,
    pub(crate) rounds: Vec<Vec<Question>>,
}

impl Path {
    /// Whether there may be one more round.
    pub(crate) fn may_go_on<'e>(
        &self,
        options: &Options,
        exchanges: impl IntoIterator<Item = &'e Exchange>,
    ) -> Result<(), CallError> {
        if self.rounds.len() < options.max_rounds {
            return Ok(());
        }
        let text = format!("no result after {} rounds of questions", self.rounds.len());
        Err(CallError::between(Fault::TooManyRounds, text, exchanges))
    }

    pub(crate) fn called<R>(self, result: R, raw: Value) -> Called<R> {
        let Self { notifications, rounds } = self;
        Called { result, raw, notifications, rounds, task_id: None, polls: 0 }
    }
}

pub(crate) fn tool_params(tool: &str, arguments: impl Serialize) -> Result<Value, CallError> {
    let mut params = json!({ "name": tool });
    put(&mut params, "arguments", arguments)?;
    Ok(params)
}

fn put(params: &mut Value, name: &str, value: impl Serialize) -> Result<(), CallError> {
    match serde_json::to_value(value) {
        Ok(Value::Null) => {}
        Ok(value) => params[name] = value,
        Err(error) => return Err(CallError::misuse(format!("{name} are not JSON: {error}"))),
    }
    Ok(())
}

pub(crate) fn unanswered<'e>(
    question: &Question,
    exchanges: impl IntoIterator<Item = &'e Exchange>,
) -> CallError {
    let Question { key, method, .. } = question;
    let text = format!(
        "the test does not answer the question `{key}` ({method}: {:?}): give the client an answer \
         with `.answer({key:?}, ..)`, `.decline({key:?})` or `.on_question(..)`",
        question.message()
    );
    CallError::between(Fault::Unanswered { key: key.clone() }, text, exchanges)
}

/// What is sound and cannot be read is not what the specification says.
fn typed<T: DeserializeOwned>(reply: &Reply, value: Value) -> Result<T, CallError> {
    serde_json::from_value(value)
        .map_err(|error| reply.refused(format!("the result is ill-formed: {error}")))
}
