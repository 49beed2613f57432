// Answers the question of a run in a real browser, as a person does:
//   node answer.mjs ADDRESS             (the page of a run that waits at a list of options, in `nietz view`)
import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';

const program = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const browser = await chromium.launch({ executablePath: program.find(existsSync), args: ['--no-sandbox', '--disable-gpu'] });
const page = await browser.newPage();
await page.goto(process.argv[2]);
await page.locator('.question select').selectOption('green');
await page.locator('.question button').click();
await page.locator('.question code').waitFor({ timeout: 20_000 });
console.log(await page.locator('.question').innerText());
await browser.close();
