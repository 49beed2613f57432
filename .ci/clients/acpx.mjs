// A flow by acpx, a client of others for terminals: each prompt is a call of it, in one session.
import { execFileSync } from "node:child_process";
import { answers, done, note, told, typed } from "./common.mjs";

const program = `${process.env.NIETZ_TEST_CLIENTS}/node_modules/acpx/dist/cli.js`;
const agent = [told.nietz, "acp", ...told.options].map((word) => `'${word}'`).join(" ");
const run = (...words) => {
  const output = execFileSync(process.execPath, [program, "--agent", agent, "--cwd", told.cwd, "--ttl", "5", ...words], {
    cwd: told.cwd,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
  note("acpx", `${words.join(" ")}\n${output}`);
  return output;
};
run("sessions", "new");
run("prompt", typed());
let asked = 0;
for (const answer of answers) {
  asked += 1;
  // It sends no empty prompts.
  run("prompt", answer === "" ? "/default" : answer);
}
run("sessions", "close");
done({ asked });
