// A flow by the official clients of the Model Context Protocol: the one of today in three modes, with forms and without, also over
// HTTP, and the one before it.
import { execFileSync } from "node:child_process";
import { answers, done, installedModule, note, told } from "./common.mjs";
import { serve } from "./http.mjs";

const isOld = told.mode === "sdk";
const { Client, StreamableHTTPClientTransport } = await installedModule(
  isOld ? "@modelcontextprotocol/sdk/client/index.js" : "@modelcontextprotocol/client",
);
const { StdioClientTransport } = await installedModule(
  isOld ? "@modelcontextprotocol/sdk/client/stdio.js" : "@modelcontextprotocol/client/stdio",
);
const hasForms = told.mode !== "none";
const mode = { pinned: { pin: "2026-07-28" }, auto: "auto" }[told.mode] ?? "legacy";
const client = new Client(
  { name: "nietz-test", version: "1" },
  {
    capabilities: hasForms ? { elicitation: { form: {} } } : {},
    ...(isOld ? {} : { versionNegotiation: { mode }, inputRequired: { maxRounds: 30 } }),
  },
);
let asked = 0;
const form = async (request) => {
  asked += 1;
  note("form", request.params);
  const field = request.params.requestedSchema.properties.answer;
  const said = answers.shift() ?? "";
  const answer = field.type === "boolean" ? said === "yes" : said;
  note("user", String(answer));
  // An empty field is left out, as forms do.
  return { action: "accept", content: said === "" ? {} : { answer } };
};
if (hasForms) {
  if (isOld) {
    const { ElicitRequestSchema } = await installedModule("@modelcontextprotocol/sdk/types.js");
    client.setRequestHandler(ElicitRequestSchema, form);
  } else {
    client.setRequestHandler("elicitation/create", form);
  }
}
const server = told.mode === "http" ? await serve(told.nietz, told.options, told.cwd) : undefined;
const overHttp = () =>
  new StreamableHTTPClientTransport(new URL(server.address), {
    requestInit: { headers: { authorization: `Bearer ${server.token}` } },
  });
const overPipes = () =>
  new StdioClientTransport({
    command: told.nietz,
    args: ["mcp", ...told.options],
    cwd: told.cwd,
    env: process.env,
    stderr: "inherit",
  });
await client.connect(server ? overHttp() : overPipes());
const { tools } = await client.listTools();
note("tools", tools.map((tool) => tool.name).join(", "));
const options = { timeout: 300_000, onprogress: (progress) => note("progress", progress.message ?? "") };
const call = async (name, args) => {
  note("call", { name, arguments: args });
  const params = { name, arguments: args };
  const result = isOld ? await client.callTool(params, undefined, options) : await client.callTool(params, options);
  for (const part of result.content) note("result", part.text ?? part.uri ?? "");
  note("data", result.structuredContent ?? {});
  if (result.isError) throw new Error(result.content.map((part) => part.text).join("\n"));
  return result.structuredContent;
};
let state = await call(`flow_${told.flow}`, told.arguments);
// A person answers by their model where there are no forms; what takes long is waited for.
while (state.status === "waiting" || state.status === "running") {
  if (state.status === "running") {
    state = await call("wait", { run: state.run, seconds: 30 });
  } else if (hasForms) {
    state = await call("resume", { run: state.run });
  } else {
    asked += 1;
    const said = answers.shift() ?? "";
    const { type, effect, default: usual, approval } = state.question;
    const yes = type === "confirm" && (said === "" ? usual === true : said === "yes");
    if (approval || yes) {
      // What approves something is said by the person themselves, in a terminal.
      note("terminal", `nietz answer ${state.run} ${yes ? "yes" : said}`);
      execFileSync(told.nietz, ["answer", state.run, yes ? "yes" : said], { cwd: told.cwd, stdio: "ignore" });
      do {
        await new Promise((done) => setTimeout(done, 200));
        state = await call("wait", { run: state.run, seconds: 30 });
      } while (state.question?.effect === effect);
    } else {
      state = await call("answer", { run: state.run, answer: said, said_by: "user" });
    }
  }
}
await client.close();
server?.end();
done({ asked, status: state.status });
