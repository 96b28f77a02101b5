//! From options to entries: what is checked is checked here, for definitions made once and for those
//! that a provider makes.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use crate::{
    invoke::{Invoke, Location},
    names,
    options::{PromptOptions, ResourceOptions, TemplateOptions, ToolOptions},
    param_headers,
    protocol::{Prompt, Resource, ResourceTemplate, Tool},
    schema::Schema,
    server::{PromptEntry, ResourceEntry, TemplateEntry, ToolEntry},
    uri::{self, UriTemplate},
};

pub(crate) fn tool(
    mut options: ToolOptions,
    handler: Arc<dyn for<'a> Invoke<&'a str>>,
    faults: &mut Vec<String>,
) -> (Tool, ToolEntry) {
    faults.append(&mut options.check());
    let tool = options.definition;
    let name = tool.name.clone();
    if !names::is_tool_name(&name) {
        faults.push(format!(
            "tool `{name}`: a name has 1 to 128 characters of A-Z a-z 0-9 _ - . (TOOL-06)"
        ));
    }
    if !options.has_schema {
        faults.push(format!(
            "tool `{name}` takes raw arguments: give it `.input_schema(..)` in `tool_with`"
        ));
    } else if tool.input_schema.get("type").and_then(Value::as_str) != Some("object") {
        faults.push(format!(
            "tool `{name}`: the root of its input schema must have `\"type\": \"object\"` \
             (TOOL-07); take a struct with named fields, or NoArgs"
        ));
    }
    let is_object = tool.input_schema.is_object();
    let mut compile = |which: &str, schema: &Value| match Schema::compile(schema) {
        Ok(schema) => Some(schema),
        Err(fault) => {
            faults.push(format!("tool `{name}`: its {which} schema: {fault}"));
            None
        }
    };
    let input = if is_object { compile("input", &tool.input_schema) } else { None };
    let input = input.filter(|_| options.validates);
    let output = tool.output_schema.as_ref().and_then(|schema| compile("output", schema));
    let checks_output = options.checks_output.unwrap_or(cfg!(debug_assertions));
    let output = output.filter(|_| checks_output).map(Arc::new);
    let headers = param_headers::from_schema(&tool.input_schema).unwrap_or_else(|fault| {
        faults.push(format!("tool `{name}`: {fault}"));
        Vec::new()
    });
    let entry = ToolEntry {
        name: name.as_str().into(),
        input,
        output,
        policy: options.policy,
        headers,
        handler,
    };
    (tool, entry)
}

pub(crate) fn prompt(
    mut options: PromptOptions,
    handler: Arc<dyn Invoke<BTreeMap<String, String>>>,
    faults: &mut Vec<String>,
) -> (Prompt, PromptEntry) {
    faults.append(&mut options.check());
    let prompt = options.definition;
    if prompt.name.is_empty() {
        faults.push("a prompt has an empty name; give it one".to_owned());
    }
    let arguments = prompt.arguments.as_deref().unwrap_or(&[]);
    let entry = PromptEntry {
        name: prompt.name.as_str().into(),
        policy: options.policy,
        required: arguments
            .iter()
            .filter(|argument| argument.required == Some(true))
            .map(|argument| argument.name.clone())
            .collect(),
        arguments: arguments.iter().map(|argument| argument.name.clone()).collect(),
        completers: options.completers,
        handler,
    };
    (prompt, entry)
}

pub(crate) fn resource(
    mut options: ResourceOptions,
    handler: Arc<dyn for<'a> Invoke<Location<'a>>>,
    faults: &mut Vec<String>,
) -> (Resource, ResourceEntry) {
    faults.append(&mut options.check());
    let resource = options.definition;
    if !uri::is_uri(&resource.uri) {
        faults.push(format!(
            "resource `{}`: its URI must be absolute, as in `notes://today` (RFC 3986)",
            resource.uri
        ));
    }
    let entry = ResourceEntry {
        policy: options.policy,
        cache: options.cache,
        mime_type: resource.mime_type.clone(),
        handler,
    };
    (resource, entry)
}

pub(crate) fn template(
    mut options: TemplateOptions,
    handler: Arc<dyn for<'a> Invoke<Location<'a>>>,
    faults: &mut Vec<String>,
) -> Option<(ResourceTemplate, TemplateEntry)> {
    let uri_template = options.definition.uri_template.clone();
    let template = match UriTemplate::parse(&uri_template) {
        Ok(template) => template,
        Err(fault) => {
            faults.push(format!("resource template `{uri_template}`: {fault}"));
            return None;
        }
    };
    faults.append(&mut options.check(template.variables()));
    let read = ResourceEntry {
        policy: options.policy,
        cache: options.cache,
        mime_type: options.definition.mime_type.clone(),
        handler,
    };
    let entry = TemplateEntry { template, completers: options.completers, read };
    Some((options.definition, entry))
}
