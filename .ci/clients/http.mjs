// `nietz mcp --http`: the server, and what its clients need of it.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

/** Starts the server. Returns its address, its token, and what ends it. */
export async function serve(nietz, options, cwd) {
  const child = spawn(nietz, ["mcp", "--http", "127.0.0.1:0", ...options], { cwd, stdio: ["ignore", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const address = (await lines.next()).value;
  const token = (await lines.next()).value;
  return { address, token, end: () => child.kill() };
}
