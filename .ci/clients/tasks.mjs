// A flow as a task, by the official package for the extension, over HTTP.
import { answers, done, installedFile, installedModule, note, told } from "./common.mjs";
import { serve } from "./http.mjs";

const { Client, StreamableHTTPClientTransport } = await installedModule("@modelcontextprotocol/client");
const { createApplicationInputHandler, createTaskSessionFromClient } = await installedFile(
  "@modelcontextprotocol/ext-tasks/dist/client/index.js",
);
const server = await serve(told.nietz, told.options, told.cwd);
const authorization = `Bearer ${server.token}`;
const clientInfo = { name: "nietz-test", version: "1" };
const clientCapabilities = { elicitation: { form: {} }, extensions: { "io.modelcontextprotocol/tasks": {} } };
const client = new Client(clientInfo, { capabilities: clientCapabilities, versionNegotiation: { mode: { pin: "2026-07-28" } } });
await client.connect(new StreamableHTTPClientTransport(new URL(server.address), { requestInit: { headers: { authorization } } }));

let asked = 0;
const never = (kind) => () => {
  throw new Error(`nobody expected ${kind}`);
};
const elicitation = (request) => {
  asked += 1;
  note("form", request);
  const said = answers.shift() ?? "";
  note("user", said);
  const params = request.params ?? request;
  const isYesOrNo = params.requestedSchema?.properties?.answer?.type === "boolean";
  return { action: "accept", content: said === "" ? {} : { answer: isYesOrNo ? said === "yes" : said } };
};
let number = 1000;
const rawDispatch = async (request, { signal } = {}) => {
  const id = (number += 1);
  const headers = {
    authorization,
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": request.method,
  };
  const name = request.params?.name ?? request.params?.taskId;
  if (name) headers["mcp-name"] = name;
  const reply = await fetch(server.address, { method: "POST", headers, signal, body: JSON.stringify({ jsonrpc: "2.0", ...request, id }) });
  const text = await reply.text();
  const messages = text.split("\n").map((line) => line.replace(/^data:\s*/, "")).filter((line) => line.startsWith("{"));
  const own = messages.map((line) => JSON.parse(line)).find((message) => message.id === id);
  if (!own) throw new Error(`${request.method}: ${reply.status} ${text}`);
  return own.error ? { kind: "error", error: own.error } : { kind: "result", result: own.result };
};
const session = createTaskSessionFromClient(client, {
  endpointId: "nietz",
  rawDispatch,
  v2RequestFraming: { protocolVersion: "2026-07-28", clientInfo, clientCapabilities },
  onInputRequest: createApplicationInputHandler({ elicitation, sampling: never("sampling"), roots: never("roots") }),
});
const execution = await session.callTool(`flow_${told.flow}`, told.arguments);
const { outcome } = await execution.settle();
note("outcome", outcome);
await session.close();
await client.close();
server.end();
done({ asked, outcome: outcome.kind ?? outcome.status ?? outcome.type });
