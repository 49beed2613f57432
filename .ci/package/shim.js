#!/usr/bin/env node
// Starts the program of this machine's own package, and ends as it does.
const { spawn } = require('node:child_process');
const { constants } = require('node:os');

const name = `@nietz/${process.platform}-${process.arch}`;
const fail = why => {
  console.error(`nietz: ${why}`);
  process.exit(1);
};
let program;
try {
  program = require.resolve(`${name}/nietz`);
} catch {
  fail(`the package ${name} is not installed: npm leaves it out with --omit=optional, and not every machine has one; \`cargo install nietz\` builds the program`);
}
const child = spawn(program, process.argv.slice(2), { stdio: 'inherit' });
child.on('error', error => fail(`${program} cannot be started: ${error.message}`));
// The terminal tells both of Ctrl-C; what is sent to this process alone is passed on.
for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
process.on('SIGINT', () => {});
child.on('exit', (code, signal) => process.exit(signal ? 128 + constants.signals[signal] : code));
