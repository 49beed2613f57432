// Formats all Lua of this tree with StyLua, by `.stylua.toml`. Once: `npm ci --prefix .ci/format`. Then
// `node .ci/format/format.mjs` writes, and with `--check` tells what would change and exits with 1.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import * as stylua from "@johnnymorganz/stylua";

// Not formatted: attacks, whose form is their point, and flows whose journals hold their digests.
const AS_THEY_ARE = ["tests/lua/hostile/", "tests/journals/"];
const ENUMS = {
  syntax: stylua.LuaVersion,
  indent_type: stylua.IndentType,
  quote_style: stylua.QuoteStyle,
  call_parentheses: stylua.CallParenType,
};

const root = fileURLToPath(new URL("../..", import.meta.url));
const settings = readFileSync(join(root, ".stylua.toml"), "utf8").matchAll(/^(\w+) = (?:"(.*)"|(\d+))$/gm);
const chosen = [...settings].map(([, name, text, number]) => {
  const value = text === undefined ? Number(number) : ENUMS[name]?.[text];
  if (value === undefined) throw new Error(`.stylua.toml: \`${name}\` is not known here`);
  return [name, value];
});

const listed = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.lua", "*.luau"], { cwd: root });
const paths = listed.toString().split("\0").filter((path) => path && !AS_THEY_ARE.some((folder) => path.startsWith(folder)));
const checking = process.argv.includes("--check");
function form(source) {
  // Each call takes its configuration away.
  const config = Object.assign(stylua.Config.new(), Object.fromEntries(chosen));
  return stylua.formatCode(source, config, undefined, stylua.OutputVerification.Full);
}

let faults = 0;
for (const path of paths) {
  const source = readFileSync(join(root, path), "utf8");
  let formatted;
  try {
    // What it makes of some lines it writes in yet another way the next time.
    for (let last = source; (formatted = form(last)) !== last; last = formatted);
  } catch (error) {
    console.log(`${path}: ${String(error).split("\n").slice(0, 3).join(" ")}`);
    faults += 1;
    continue;
  }
  if (formatted === source) continue;
  console.log(`${path} ${checking ? "is not formatted" : "was formatted"}`);
  if (checking) faults += 1;
  else writeFileSync(join(root, path), formatted);
}
if (faults > 0) {
  console.log("`node .ci/format/format.mjs` formats all that is Luau");
  process.exit(1);
}
