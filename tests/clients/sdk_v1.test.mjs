// The TypeScript SDK's client, version 1, against the built server over stdio.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import Ajv2020 from "ajv/dist/2020.js";

import {
  execute,
  images,
  lastText,
  outcome,
  processesWith,
  serverCommand,
  sleeper,
  until,
  whyNoPlots,
  withClient,
} from "./server.mjs";

const TOOLS = ["execute_code", "get_language_details", "get_supported_languages"];

test("the tools are listed with schemas that are valid JSON Schema 2020-12", () =>
  withClient(async (client) => {
    const { tools } = await client.listTools();
    assert.deepEqual(tools.map((tool) => tool.name).sort(), TOOLS);
    for (const tool of tools) {
      for (const schema of [tool.inputSchema, tool.outputSchema].filter(Boolean)) {
        const ajv = new Ajv2020.default({ strict: true, allErrors: true });
        assert.ok(ajv.validateSchema(schema), `${tool.name}: ${JSON.stringify(ajv.errors)}`);
        ajv.compile(schema);
      }
    }
    const [{ inputSchema, outputSchema }] = tools.filter((tool) => tool.name === "execute_code");
    assert.deepEqual(Object.keys(inputSchema.properties).sort(), ["code", "language", "libraries", "timeout"]);
    assert.deepEqual(inputSchema.required, ["code"]);
    assert.equal(inputSchema.properties.libraries.items.type, "string");
    assert.ok(outputSchema, "execute_code has an outputSchema");
  }));

test("python prints", () =>
  withClient(async (client) => {
    const result = await execute(client, { code: "import sys\nprint('grüße')\nprint('aside', file=sys.stderr)" });
    assert.ok(!result.isError);
    assert.equal(result.content.length, 1);
    assert.deepEqual(outcome(result), { exit_code: 0, stderr: "aside\n", stdout: "grüße\n" });
    assert.equal(result.structuredContent.stdout, "grüße\n");

    const plain = await execute(client, { code: "print(1)" });
    assert.equal(lastText(plain), '{\n  "exit_code": 0,\n  "stderr": "",\n  "stdout": "1\\n"\n}');
  }));

test("python draws two plots: the image blocks come in drawing order, then the text", (t) =>
  withClient(async (client) => {
    const missing = await whyNoPlots(client);
    if (missing) return t.skip(missing);
    const result = await execute(client, {
      code: [
        "import matplotlib.pyplot as plt",
        "plt.figure(figsize=(2, 1), dpi=100); plt.plot([1, 2]); plt.show()",
        "plt.figure(figsize=(3, 1), dpi=100); plt.plot([2, 1])",
        "print('drawn')",
      ].join("\n"),
    });
    assert.deepEqual(
      result.content.map((block) => block.type),
      ["image", "image", "text"],
    );
    assert.equal(outcome(result).stdout, "drawn\n");
    const pngs = images(result).map((block) => Buffer.from(block.data, "base64"));
    for (const png of pngs) assert.equal(png.subarray(1, 4).toString("latin1"), "PNG");
    const widths = pngs.map((png) => png.readUInt32BE(16));
    assert.ok(widths[0] < widths[1], `the narrow figure was drawn first, but the widths are ${widths}`);
    assert.equal(images(result)[0].mimeType, "image/png");
  }));

test("javascript runs", () =>
  withClient(async (client) => {
    const result = await execute(client, { language: "JS", code: "console.log([1, 2].map((x) => x * 2).join())" });
    assert.ok(!result.isError, lastText(result));
    assert.deepEqual(outcome(result), { exit_code: 0, stderr: "", stdout: "2,4\n" });
  }));

test("a program that ends with an exit code of its own is no error", () =>
  withClient(async (client) => {
    const result = await execute(client, { code: "import sys; print('before'); sys.exit(3)" });
    assert.ok(!result.isError);
    assert.deepEqual(outcome(result), { exit_code: 3, stderr: "", stdout: "before\n" });

    const raised = await execute(client, { code: "\n\nraise ValueError('seen')" });
    assert.ok(!raised.isError);
    assert.equal(outcome(raised).exit_code, 1);
    assert.match(outcome(raised).stderr, /line 3[^]*ValueError: seen/);
  }));

test("a timeout is an error that says so and keeps what was printed", () =>
  withClient(async (client) => {
    const result = await execute(client, { timeout: 1, code: "print('before')\nwhile True: pass" });
    assert.equal(result.isError, true);
    assert.equal(outcome(result).exit_code, 124);
    assert.equal(outcome(result).stdout, "before\n");
    assert.match(outcome(result).reason, /timeout/);
  }));

test("a cancelled call ends its program within a second, and the server goes on", () =>
  withClient(async (client) => {
    const marker = `sleeper-${randomUUID()}`;
    const abort = new AbortController();
    const call = execute(client, { code: sleeper(marker) }, { signal: abort.signal });
    call.catch(() => {}); // looked at below
    await until(() => processesWith(marker).length > 0, 20, "the program runs");
    abort.abort();
    await assert.rejects(call);
    await until(() => processesWith(marker).length === 0, 1, "the cancelled program is gone");

    const next = await execute(client, { code: "print('still here')" });
    assert.equal(outcome(next).stdout, "still here\n");
  }));

test("progress is reported, grows, and carries the newest output", () =>
  withClient(async (client) => {
    const seen = [];
    const code = "import time\nfor step in range(6):\n  print('step', step)\n  time.sleep(0.3)";
    const result = await execute(client, { code }, { onprogress: (progress) => seen.push(progress) });
    assert.equal(outcome(result).exit_code, 0);
    assert.ok(seen.length >= 2, `progress seen: ${JSON.stringify(seen)}`);
    for (let i = 1; i < seen.length; i++) assert.ok(seen[i].progress > seen[i - 1].progress, "progress must grow");
    assert.ok(
      seen.some(({ message }) => /step \d/.test(message ?? "")),
      `no output in ${JSON.stringify(seen)}`,
    );
  }));

test("calls run at the same time and share nothing", () =>
  withClient(async (client) => {
    // Each program leaves a file, looks for the others', and says when it was there.
    const code = (n) => `import json, os, time
begin = time.time()
open("mine-${n}", "w").close()
time.sleep(2)
print(json.dumps({"files": [f for f in os.listdir() if f.startswith("mine")], "begin": begin, "end": time.time()}))`;
    const results = await Promise.all([1, 2, 3, 4].map((n) => execute(client, { code: code(n) })));
    const told = results.map((result) => JSON.parse(outcome(result).stdout));
    told.forEach(({ files }, i) => assert.deepEqual(files, [`mine-${i + 1}`]));
    const lastBegin = Math.max(...told.map(({ begin }) => begin));
    const firstEnd = Math.min(...told.map(({ end }) => end));
    assert.ok(lastBegin < firstEnd, "all four were there at one moment");
  }));

test("ping is answered while a call runs", () =>
  withClient(async (client) => {
    let ended = false;
    const call = execute(client, { code: "import time; time.sleep(2); print('end')" }).finally(() => (ended = true));
    for (let i = 0; i < 5; i++) await client.ping({ timeout: 1000 });
    assert.equal(ended, false, "the pings were answered before the call ended");
    assert.equal(outcome(await call).stdout, "end\n");
  }));

test("the resource sandbox://languages is listed and read", () =>
  withClient(async (client) => {
    const { resources } = await client.listResources();
    assert.deepEqual(
      resources.map((resource) => resource.uri),
      ["sandbox://languages"],
    );
    const { contents } = await client.readResource({ uri: "sandbox://languages" });
    assert.equal(contents[0].uri, "sandbox://languages");
    const text = JSON.stringify(JSON.parse(contents[0].text));
    for (const language of ["python", "javascript", "java", "cpp", "go", "ruby"]) assert.match(text, new RegExp(language));
    await assert.rejects(client.readResource({ uri: "sandbox://nothing" }), { code: -32002 });
  }));

test("the languages are listed and described", () =>
  withClient(async (client) => {
    const list = await client.callTool({ name: "get_supported_languages", arguments: {} });
    assert.deepEqual(JSON.parse(lastText(list)), ["python", "java", "javascript", "cpp", "go", "ruby", "r"]);

    const details = JSON.parse(
      lastText(await client.callTool({ name: "get_language_details", arguments: { language: "python" } })),
    );
    assert.equal(details.available, true);
    assert.equal(details.package_manager, "pip");
    for (const example of details.examples) {
      const result = await execute(client, { code: example.code });
      // An example may show a library that this interpreter lacks; anything else must run.
      const { exit_code, stderr } = outcome(result);
      if (!/ModuleNotFoundError/.test(stderr)) assert.equal(exit_code, 0, `${example.title}: ${stderr}`);
    }
  }));

test("bad arguments are an error of the tool, an unknown tool one of the protocol", () =>
  withClient(async (client) => {
    for (const bad of [{}, { code: 1 }, { code: "1", timeout: 0 }, { code: "1", language: "cobol" }]) {
      const result = await execute(client, bad);
      assert.equal(result.isError, true, `accepted: ${JSON.stringify(bad)}`);
    }
    await assert.rejects(client.callTool({ name: "no_such_tool", arguments: {} }), { code: -32602 });
  }));

test("close ends the server within a second, with a call under way", async () => {
  const marker = `sleeper-${randomUUID()}`;
  const transport = new StdioClientTransport(serverCommand());
  const client = new Client({ name: "llm-sandbox-tests", version: "1" });
  await client.connect(transport);
  execute(client, { code: sleeper(marker) }).catch(() => {});
  await until(() => processesWith(marker).length > 0, 20, "the program runs");
  const { pid } = transport;
  const begin = Date.now();
  await client.close();
  assert.throws(() => process.kill(pid, 0), { code: "ESRCH" });
  assert.ok(Date.now() - begin < 1000, `it took ${Date.now() - begin} ms`);
  assert.deepEqual(processesWith(marker), []);
});

for (const [asked, answered] of [
  ["2024-11-05", "2024-11-05"],
  ["2025-03-26", "2025-03-26"],
  ["2025-06-18", "2025-06-18"],
  ["2025-11-25", "2025-11-25"],
  ["1999-01-01", "2025-11-25"],
]) {
  test(`revision ${asked} is answered with ${answered} and works`, async () => {
    const transport = new StdioClientTransport(serverCommand());
    const client = new Client({ name: "llm-sandbox-tests", version: "1" });

    // The SDK always asks for the newest revision it knows: its wish is replaced on the way out.
    const send = transport.send.bind(transport);
    transport.send = (message, options) => {
      if (message.method === "initialize") message.params.protocolVersion = asked;
      return send(message, options);
    };
    let negotiated;
    transport.setProtocolVersion = (version) => (negotiated = version);

    await client.connect(transport);
    try {
      assert.equal(negotiated, answered);
      const { tools } = await client.listTools();
      assert.deepEqual(tools.map((tool) => tool.name).sort(), TOOLS);
      assert.equal(outcome(await execute(client, { code: "print(6 * 7)" })).stdout, "42\n");
    } finally {
      await client.close();
    }
  });
}
