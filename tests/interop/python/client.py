"""The official Python client against the everything server: one line for each check.

usage: python client.py URL
"""

import base64
import json
import sys

import anyio
from mcp import Client, MCPError
from mcp.client.subscriptions import ResourceUpdated, ToolsListChanged
from mcp_types import (
    ElicitResult,
    Implementation,
    PromptReference,
    ResourceTemplateReference,
)

REVISION = "2026-07-28"
LIMIT = 15  # seconds for one check


class User:
    """Answers forms by the text that comes with them."""

    def __init__(self):
        self.answers = {}
        self.asked = []

    async def __call__(self, context, params):
        self.asked.append(params)
        return self.answers.get(params.message, ElicitResult(action="cancel"))


user = User()


def equal(got, wanted):
    if got != wanted:
        raise AssertionError(f"got {got!r}, wanted {wanted!r}")


def accept(**content):
    return ElicitResult(action="accept", content=content)


async def refused(code, awaitable):
    try:
        await awaitable
    except MCPError as error:
        equal(error.code, code)
    else:
        raise AssertionError(f"no error {code}")


async def text(client, tool, arguments=None, **options):
    result = await client.call_tool(tool, arguments, **options)
    return result.content[0].text


async def connect(client):
    equal(client.protocol_version, REVISION)
    equal(client.server_info.name, "everything")


async def lists(client):
    tools = [tool.name for tool in (await client.list_tools()).tools]
    for name in ["hello", "add", "test_x_mcp_header", "json_schema_2020_12_tool"]:
        assert name in tools, tools
    prompts = [prompt.name for prompt in (await client.list_prompts()).prompts]
    assert "test_prompt_with_arguments" in prompts, prompts
    resources = [resource.name for resource in (await client.list_resources()).resources]
    assert "static-text" in resources, resources
    templates = (await client.list_resource_templates()).resource_templates
    equal([template.name for template in templates], ["template"])


async def call(client):
    equal(await text(client, "hello", {"name": "Zoë"}), "Hello, Zoë!")
    equal((await client.call_tool("add", {"a": 2, "b": 3})).structured_content, {"sum": 5})
    # The client mirrors this argument into a header, which has to carry it whole.
    for region in ["eu-west", " Zürich ", ""]:
        equal(await text(client, "test_x_mcp_header", {"region": region}), f"The region is {region}.")
    equal((await client.call_tool("test_error_handling")).is_error, True)
    await refused(-32602, client.call_tool("no_such_tool"))


async def resource(client):
    async def read(uri):
        return (await client.read_resource(uri)).contents[0]

    equal((await read("test://static-text")).text, "This is the content of the static text resource.")
    equal(base64.b64decode((await read("test://static-binary")).blob)[1:4], b"PNG")
    equal(json.loads((await read("test://template/a%20b/data")).text)["id"], "a b")
    await refused(-32602, client.read_resource("test://nothing"))


async def prompt(client):
    result = await client.get_prompt("test_prompt_with_arguments", {"arg1": "one", "arg2": "two"})
    equal(result.messages[0].content.text, "Prompt with arguments: arg1='one', arg2='two'")


async def completion(client):
    async def values(ref, name, value, known=None):
        argument = {"name": name, "value": value}
        return (await client.complete(ref, argument, known)).completion.values

    with_arguments = PromptReference(name="test_prompt_with_arguments")
    equal(await values(with_arguments, "arg1", "par"), ["paris", "park", "party"])
    equal(await values(with_arguments, "arg2", "h", {"arg1": "harbour"}), ["harbour", "hello"])
    template = ResourceTemplateReference(uri="test://template/{id}/data")
    equal(await values(template, "id", "12"), ["12", "123"])


async def progress(client):
    seen = []

    async def on_progress(done, total, message):
        seen.append((done, total, message))

    done = await text(client, "test_tool_with_progress", progress_callback=on_progress)
    equal(done, "The work is done.")
    equal(seen, [(0, 100, "Starting"), (50, 100, "Half-way"), (100, 100, "Done")])


async def elicitation(client):
    user.answers = {
        "What is your name?": accept(name="Ada"),
        "Step 1: What is your name?": accept(name="Ada"),
        "Step 2: What is your favorite color?": accept(color="green"),
        "What context should the prompt use?": accept(context="tea"),
    }

    async def on_progress(done, total, message):
        pass

    tool = "test_input_required_result_elicitation"
    equal(await text(client, tool), "Hello, Ada!")
    equal(len(user.asked), 1)
    equal(user.asked[0].requested_schema["required"], ["name"])
    equal(await text(client, "test_input_required_result_multi_round"), "Ada likes green.")
    equal(len(user.asked), 3)
    streamed = await text(client, "test_streaming_elicitation", progress_callback=on_progress)
    equal(streamed, "Hello, Ada!")
    result = await client.get_prompt("test_input_required_result_prompt")
    equal(result.messages[0].content.text, "Use this context: tea")
    user.answers["What is your name?"] = ElicitResult(action="decline")
    equal((await client.call_tool(tool)).is_error, True)


async def listen(client):
    watched = "test://watched-resource"
    async with client.listen(tools_list_changed=True, resource_subscriptions=[watched]) as changes:
        honored = changes.honored.model_dump(by_alias=True, exclude_none=True)
        equal(honored, {"toolsListChanged": True, "resourceSubscriptions": [watched]})
        # What was not asked for stays away, so the tools are the first to come.
        await client.call_tool("test_trigger_prompt_change")
        await client.call_tool("test_trigger_tool_change")
        equal(await anext(changes), ToolsListChanged())
        await client.call_tool("test_touch_watched_resource")
        equal(await anext(changes), ResourceUpdated(uri=watched))
    equal([event async for event in changes], [])
    await client.call_tool("test_trigger_tool_change")


async def cancel(client):
    steps, results = [], []
    with anyio.CancelScope() as scope:

        async def on_progress(done, total, message):
            steps.append(done)
            scope.cancel()

        results.append(await client.call_tool("test_tool_with_progress", progress_callback=on_progress))
    equal(scope.cancelled_caught, True)
    await anyio.sleep(0.3)  # longer than the tool would have worked
    equal((steps[0], results), (0, []))
    assert 100 not in steps, steps
    equal(await text(client, "hello", {"name": "Ada"}), "Hello, Ada!")


CHECKS = {
    "connect": connect,
    "list": lists,
    "call": call,
    "resource": resource,
    "prompt": prompt,
    "completion": completion,
    "progress": progress,
    "elicitation": elicitation,
    "listen": listen,
    "cancel": cancel,
}


async def report(name, check):
    try:
        with anyio.fail_after(LIMIT):
            await check
    except Exception as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())
        print(f"FAIL {name}: {why}", flush=True)
    else:
        print(f"ok {name}", flush=True)


async def main(url):
    info = Implementation(name="interop-python", version="1.0.0")
    # "auto" asks server/discover first; a server that has no such method gets the older handshake,
    # which the check `connect` takes for a failure.
    client = Client(url, mode="auto", client_info=info, elicitation_callback=user)
    with anyio.fail_after(LIMIT * (len(CHECKS) + 1)):
        async with client:
            for name, check in CHECKS.items():
                await report(name, check(client))


anyio.run(main, sys.argv[1])
