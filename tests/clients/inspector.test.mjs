// The MCP Inspector's command line against the built server over stdio.
import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";

import { nodeSince, outcome, run, server } from "./server.mjs";

const node = nodeSince(22, 19);
const skip = node ? false : "skipped: Node 22.19 or later";
const program = path.join("node_modules", "@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js");

function inspect(...args) {
  const { status, stdout, stderr } = run(node, program, "--cli", "-q", "--format", "json", server, "serve", ...args);
  return { status, stderr, ...JSON.parse(stdout || stderr) };
}

test("the inspector lists the tools and finds no fault with their schemas", { skip }, () => {
  const { status, result, stderr } = inspect("--method", "tools/list", "--strict");
  assert.equal(status, 0, stderr);
  assert.deepEqual(
    result.tools.map((tool) => tool.name).sort(),
    ["execute_code", "get_language_details", "get_supported_languages"],
  );
});

test("the inspector runs code", { skip }, () => {
  const args = ["--tool-arg", "language=python", "--tool-arg", "code=print(1)"];
  const { status, result, stderr } = inspect("--method", "tools/call", "--tool-name", "execute_code", ...args);
  assert.equal(status, 0, stderr);
  assert.deepEqual(outcome(result), { exit_code: 0, stderr: "", stdout: "1\n" });
});

test("the inspector reports a call that had to be stopped", { skip }, () => {
  const args = ["--tool-args-json", JSON.stringify({ code: "while True: pass", timeout: 1 })];
  const { status, result } = inspect("--method", "tools/call", "--tool-name", "execute_code", ...args);
  assert.equal(status, 5);
  assert.equal(result.isError, true);
  assert.match(outcome(result).reason, /timeout/);
});

test("the inspector reads the resource", { skip }, () => {
  const { status, result, stderr } = inspect("--method", "resources/read", "--uri", "sandbox://languages");
  assert.equal(status, 0, stderr);
  assert.equal(result.contents[0].uri, "sandbox://languages");
});
