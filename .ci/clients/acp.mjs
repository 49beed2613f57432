// A flow by the official client of the Agent Client Protocol, with forms or with plain turns.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { answers, done, installedModule, note, told } from "./common.mjs";

const acp = await installedModule("@agentclientprotocol/sdk");
const hasForms = told.mode === "forms";
const agent = spawn(told.nietz, ["acp", ...told.options], { cwd: told.cwd, stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
let asked = 0;
let shown = "";
const words = (args) =>
  Object.entries(args)
    .filter(([name]) => !["topic", "request", "problem", "goal"].includes(name))
    .map(([name, value]) => {
      const flag = name.replaceAll("_", "-");
      return value === true ? `--${flag}` : value === false ? `--no-${flag}` : /\s/.test(value) ? `--${flag}="${value}"` : `--${flag}=${value}`;
    });
const text = told.arguments.topic ?? told.arguments.request ?? told.arguments.problem ?? told.arguments.goal ?? "";

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
    await say([`/${told.flow}`, ...words(told.arguments), text].filter((part) => part !== "").join(" "));
    while (!hasForms && answers.length > 0) {
      asked += 1;
      await say(answers.shift());
    }
  });
agent.kill();
done({ asked });
