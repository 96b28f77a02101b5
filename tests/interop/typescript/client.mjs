// The official TypeScript client against the everything server: one line for each check.
//
// usage: node client.mjs URL
import { setTimeout as sleep } from 'node:timers/promises';
import { deepEqual, equal, ok, rejects } from 'node:assert/strict';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const REVISION = '2026-07-28';
const LIMIT = 15_000; // ms for one check
const url = new URL(process.argv[2]);

// How the user answers a form, by the text that comes with it.
let answers = {};
const asked = [];

const client = new Client(
  { name: 'interop-typescript', version: '1.0.0' },
  { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: { pin: REVISION } } },
);
client.setRequestHandler('elicitation/create', ({ params }) => {
  asked.push(params);
  return answers[params.message] ?? { action: 'cancel' };
});

const text = (result) => result.content[0].text;
const call = (name, args, options) => client.callTool({ name, arguments: args }, options);

/** An iterator's next value as a promise, for values that come by callback. */
function channel() {
  const values = [];
  let wake = () => {};
  return {
    values,
    push: (value) => { values.push(value); wake(); },
    next: async () => {
      while (values.length === 0) await new Promise((resolve) => { wake = resolve; });
      return values.shift();
    },
  };
}

const checks = {
  async connect() {
    await client.connect(new StreamableHTTPClientTransport(url));
    equal(client.getNegotiatedProtocolVersion(), REVISION);
    equal(client.getProtocolEra(), 'modern');
    equal(client.getServerVersion().name, 'everything');
  },

  async list() {
    const names = (list) => list.map(({ name }) => name);
    const tools = names((await client.listTools()).tools);
    for (const name of ['hello', 'add', 'test_x_mcp_header', 'json_schema_2020_12_tool']) {
      ok(tools.includes(name), `tools: ${tools}`);
    }
    ok(names((await client.listPrompts()).prompts).includes('test_prompt_with_arguments'));
    ok(names((await client.listResources()).resources).includes('static-text'));
    deepEqual(names((await client.listResourceTemplates()).resourceTemplates), ['template']);
  },

  async call() {
    equal(text(await call('hello', { name: 'Zoë' })), 'Hello, Zoë!');
    deepEqual((await call('add', { a: 2, b: 3 })).structuredContent, { sum: 5 });
    // The client mirrors this argument into a header, which has to carry it whole.
    for (const region of ['eu-west', ' Zürich ', '']) {
      equal(text(await call('test_x_mcp_header', { region })), `The region is ${region}.`);
    }
    equal((await call('test_error_handling')).isError, true);
    await rejects(call('no_such_tool'), { code: -32602 });
  },

  async resource() {
    const read = async (uri) => (await client.readResource({ uri })).contents[0];
    equal((await read('test://static-text')).text, 'This is the content of the static text resource.');
    const png = Buffer.from((await read('test://static-binary')).blob, 'base64');
    equal(png.subarray(1, 4).toString(), 'PNG');
    equal(JSON.parse((await read('test://template/a b/data'.replace(' ', '%20'))).text).id, 'a b');
    await rejects(read('test://nothing'), { code: -32602 });
  },

  async prompt() {
    const prompt = await client.getPrompt({
      name: 'test_prompt_with_arguments',
      arguments: { arg1: 'one', arg2: 'two' },
    });
    equal(prompt.messages[0].content.text, "Prompt with arguments: arg1='one', arg2='two'");
  },

  async completion() {
    const values = async (ref, name, value, known) => {
      const context = known && { arguments: known };
      return (await client.complete({ ref, argument: { name, value }, context })).completion.values;
    };
    const prompt = { type: 'ref/prompt', name: 'test_prompt_with_arguments' };
    deepEqual(await values(prompt, 'arg1', 'par'), ['paris', 'park', 'party']);
    deepEqual(await values(prompt, 'arg2', 'h', { arg1: 'harbour' }), ['harbour', 'hello']);
    const template = { type: 'ref/resource', uri: 'test://template/{id}/data' };
    deepEqual(await values(template, 'id', '12'), ['12', '123']);
  },

  async progress() {
    const seen = [];
    const result = await call('test_tool_with_progress', {}, { onprogress: (step) => seen.push(step) });
    equal(text(result), 'The work is done.');
    deepEqual(seen.map(({ progress, total }) => [progress, total]), [[0, 100], [50, 100], [100, 100]]);
    equal(seen[1].message, 'Half-way');
  },

  async elicitation() {
    answers = {
      'What is your name?': { action: 'accept', content: { name: 'Ada' } },
      'Step 1: What is your name?': { action: 'accept', content: { name: 'Ada' } },
      'Step 2: What is your favorite color?': { action: 'accept', content: { color: 'green' } },
      'What context should the prompt use?': { action: 'accept', content: { context: 'tea' } },
    };
    const name = 'test_input_required_result_elicitation';
    equal(text(await call(name)), 'Hello, Ada!');
    equal(asked.length, 1);
    deepEqual(asked[0].requestedSchema.required, ['name']);
    equal(text(await call('test_input_required_result_multi_round')), 'Ada likes green.');
    equal(asked.length, 3);
    equal(text(await call('test_streaming_elicitation', {}, { onprogress() {} })), 'Hello, Ada!');
    const prompt = await client.getPrompt({ name: 'test_input_required_result_prompt' });
    equal(prompt.messages[0].content.text, 'Use this context: tea');
    answers['What is your name?'] = { action: 'decline' };
    equal((await call(name)).isError, true);
  },

  async listen() {
    const changes = channel();
    client.setNotificationHandler('notifications/tools/list_changed', () => changes.push('tools'));
    client.setNotificationHandler('notifications/prompts/list_changed', () => changes.push('prompts'));
    client.setNotificationHandler('notifications/resources/updated', ({ params }) => changes.push(params.uri));
    const watched = 'test://watched-resource';
    const filter = { toolsListChanged: true, resourceSubscriptions: [watched] };
    const subscription = await client.listen(filter);
    deepEqual(subscription.honoredFilter, filter);
    // What was not asked for stays away, so the tools are the first to come.
    await call('test_trigger_prompt_change');
    await call('test_trigger_tool_change');
    equal(await changes.next(), 'tools');
    await call('test_touch_watched_resource');
    equal(await changes.next(), watched);
    await subscription.close();
    equal(await subscription.closed, 'local');
    await call('test_trigger_tool_change');
    await sleep(200);
    deepEqual(changes.values, []);
  },

  async cancel() {
    const controller = new AbortController();
    const steps = [];
    const cancelled = call('test_tool_with_progress', {}, {
      signal: controller.signal,
      onprogress: ({ progress }) => { steps.push(progress); controller.abort('enough'); },
    });
    await rejects(cancelled, /enough/);
    await sleep(300); // longer than the tool would have worked
    equal(steps[0], 0);
    ok(!steps.includes(100), `worked to its end: ${steps}`);
    equal(text(await call('hello', { name: 'Ada' })), 'Hello, Ada!');
  },
};

/** Fails what does not end. */
const within = (promise) =>
  Promise.race([promise, sleep(LIMIT).then(() => { throw new Error(`more than ${LIMIT} ms`); })]);

for (const [name, check] of Object.entries(checks)) {
  try {
    await within(check());
    console.log(`ok ${name}`);
  } catch (error) {
    console.log(`FAIL ${name}: ${String(error.message ?? error).replaceAll(/\s+/g, ' ')}`);
  }
}
await within(client.close());
process.exit(); // not only when the timers are done
