// A flow by the official client of the Agent Client Protocol, with forms or with plain turns.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { answers, done, installedModule, note, told, typed } from "./common.mjs";

const acp = await installedModule("@agentclientprotocol/sdk");
const hasForms = told.mode === "forms";
const agent = spawn(told.nietz, ["acp", ...told.options], { cwd: told.cwd, stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
let asked = 0;
let shown = "";

await acp
  .client({ name: "nietz-test" })
  .onNotification("session/update", ({ params }) => {
    const update = params.update;
    if (update.sessionUpdate === "agent_message_chunk") shown += update.content.text;
    else note(update.sessionUpdate, update);
  })
  .onRequest("elicitation/create", ({ params }) => {
    asked += 1;
    note("form", params);
    const said = answers.shift() ?? "";
    const isYesOrNo = params.requestedSchema.properties.answer.type === "boolean";
    note("user", said);
    return { action: "accept", content: said === "" ? {} : { answer: isYesOrNo ? said === "yes" : said } };
  })
  .connectWith(stream, async (context) => {
    const clientCapabilities = hasForms ? { elicitation: { form: {} } } : {};
    await context.request("initialize", { protocolVersion: acp.PROTOCOL_VERSION ?? 1, clientCapabilities });
    const { sessionId } = await context.request("session/new", { cwd: told.cwd, mcpServers: [] });
    const say = async (line) => {
      note("user", line);
      shown = "";
      const ended = await context.request("session/prompt", { sessionId, prompt: [{ type: "text", text: line }] });
      note("nietz", shown);
      note("turn", ended.stopReason);
    };
    await say(typed());
    while (!hasForms && answers.length > 0) {
      asked += 1;
      await say(answers.shift());
    }
  });
agent.kill();
done({ asked });
