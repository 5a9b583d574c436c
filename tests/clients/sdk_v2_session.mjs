// One session of the TypeScript SDK's client, version 2 (which needs Node 20 or later):
//   node sdk_v2_session.mjs MODE       MODE: legacy (initialize) or auto (server/discover, then initialize if need be)
// Prints what it saw as JSON; sdk_v2.test.mjs judges it.
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

import { serverCommand } from "./server.mjs";

const client = new Client(
  { name: "llm-sandbox-tests", version: "2" },
  { versionNegotiation: { mode: process.argv[2] } },
);
await client.connect(new StdioClientTransport(serverCommand()));

const { tools } = await client.listTools();
const result = await client.callTool({ name: "execute_code", arguments: { code: "print(6 * 7)" } });
const bad = await client.callTool({ name: "execute_code", arguments: { code: 1 } });
const unknown = await client.callTool({ name: "no_such_tool", arguments: {} }).catch((error) => error);

const abort = new AbortController();
const sleeping = client.callTool(
  { name: "execute_code", arguments: { code: "import time; time.sleep(20)" } },
  { signal: abort.signal },
);
setTimeout(() => abort.abort(), 200);
const cancelled = await sleeping.then(
  () => false,
  () => true,
);
const afterwards = await client.callTool({ name: "execute_code", arguments: { code: "print('still here')" } });
await client.close();

console.log(
  JSON.stringify({
    tools: tools.map((tool) => tool.name).sort(),
    result,
    badIsError: bad.isError,
    unknownCode: unknown.code,
    cancelled,
    afterwards,
  }),
);
