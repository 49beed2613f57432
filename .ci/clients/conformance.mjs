// The official conformance suite, which speaks HTTP and knows no token: a door of its own adds the token, and passes on the names
// and origins that the suite says, so that those of others are refused by the server itself.
import { spawn } from "node:child_process";
import { createServer, request } from "node:http";
import { done, told } from "./common.mjs";
import { serve } from "./http.mjs";

const server = await serve(told.nietz, told.options, told.cwd);
const to = new URL(server.address);
const door = createServer((incoming, outgoing) => {
  const own = (text) => text?.replace(/^(http:\/\/)?(localhost|127\.0\.0\.1):\d+$/, `$1${to.host}`);
  const headers = { ...incoming.headers, host: own(incoming.headers.host), authorization: `Bearer ${server.token}` };
  if (incoming.headers.origin) headers.origin = own(incoming.headers.origin);
  const passed = request({ host: to.hostname, port: to.port, path: "/mcp", method: incoming.method, headers }, (reply) => {
    outgoing.writeHead(reply.statusCode, reply.headers);
    reply.pipe(outgoing);
  });
  passed.on("error", (error) => { console.error("door:", error.message); outgoing.destroy(); });
  outgoing.on("close", () => passed.destroy());
  incoming.pipe(passed);
});
await new Promise((listening) => door.listen(0, "127.0.0.1", listening));
const url = `http://127.0.0.1:${door.address().port}/mcp`;
const program = `${process.env.NIETZ_TEST_CLIENTS}/node_modules/@modelcontextprotocol/conformance/dist/index.js`;
const here = new URL(".", import.meta.url).pathname;
const words = [program, "server", "--url", url, "--expected-failures", `${here}conformance.yaml`];
const suite = spawn(process.execPath, words, { cwd: told.cwd, stdio: ["ignore", "pipe", "inherit"] });
let output = "";
suite.stdout.on("data", (piece) => (output += piece));
const code = await new Promise((ended) => suite.on("close", ended));
server.end();
console.error(output.split("\n").slice(-60).join("\n"));
done({ code });
