// The TypeScript SDK's client, version 2, against the built server over stdio.
import assert from "node:assert/strict";
import { test } from "node:test";

import { nodeSince, outcome, run } from "./server.mjs";

const node = nodeSince(20, 0);
const skip = node ? false : "skipped: Node 20 or later";

for (const mode of ["legacy", "auto"]) {
  test(`a session that opens in mode ${mode} does all of it`, { skip }, () => {
    const { status, stdout, stderr } = run(node, "sdk_v2_session.mjs", mode);
    assert.equal(status, 0, stderr);
    const seen = JSON.parse(stdout);
    assert.deepEqual(seen.tools, ["execute_code", "get_language_details", "get_supported_languages"]);
    assert.deepEqual(outcome(seen.result), { exit_code: 0, stderr: "", stdout: "42\n" });
    assert.equal(seen.badIsError, true);
    assert.equal(seen.unknownCode, -32602);
    assert.equal(seen.cancelled, true);
    assert.equal(outcome(seen.afterwards).stdout, "still here\n");
  });
}
