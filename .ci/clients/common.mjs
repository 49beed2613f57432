// What the clients of others share: what they are told to do, and a transcript of it.
import { appendFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

export const told = JSON.parse(process.argv[2]);
export const answers = [...told.answers];

const installed = createRequire(`${process.env.NIETZ_TEST_CLIENTS}/x.js`);

/** Imports a package from the folder where the clients are installed. */
export const installedModule = (name) => import(pathToFileURL(installed.resolve(name)).href);

/** Imports a file of a package that cannot be required. */
export const installedFile = (path) => import(pathToFileURL(`${process.env.NIETZ_TEST_CLIENTS}/node_modules/${path}`).href);

if (told.transcript) writeFileSync(told.transcript, "");

/** Returns what a person types to begin the flow: a slash command with its options, and the text last. */
export function typed() {
  const { topic, request, problem, goal, ...options } = told.arguments;
  const words = Object.entries(options).map(([name, value]) => {
    const flag = name.replaceAll("_", "-");
    if (typeof value === "boolean") return value ? `--${flag}` : `--no-${flag}`;
    return /\s/.test(value) ? `--${flag}="${value}"` : `--${flag}=${value}`;
  });
  return [`/${told.flow}`, ...words, topic ?? request ?? problem ?? goal ?? ""].filter((part) => part !== "").join(" ");
}

/** Adds to the transcript. */
export function note(who, what) {
  const text = typeof what === "string" ? what : JSON.stringify(what, null, 1);
  if (told.transcript) appendFileSync(told.transcript, `${who}: ${text}\n\n`);
}

/** Tells how it went, in one line, and ends. */
export function done(result) {
  console.log(JSON.stringify(result));
  process.exit(0);
}
