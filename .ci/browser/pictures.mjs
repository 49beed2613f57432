// Makes small pictures of pages, for a README:
//   node pictures.mjs FOLDER PAGE[@SELECTOR]…      (what the selector names stands in the middle)
import { existsSync, mkdirSync, statSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { chromium } from 'playwright-core';

const [folder, ...pages] = process.argv.slice(2);
const program = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const LARGEST = 120_000;
mkdirSync(folder, { recursive: true });
const browser = await chromium.launch({ executablePath: program.find(existsSync), args: ['--no-sandbox', '--disable-gpu'] });
const page = await browser.newPage({ viewport: { width: 960, height: 640 }, colorScheme: 'light' });
let wrong = 0;
for (const given of pages) {
  const [file, place] = given.split('@');
  await page.goto(`file://${resolve(file)}`);
  if (place) await page.evaluate(place => document.querySelector(place).scrollIntoView({ block: 'center' }), place);
  const path = `${folder}/${basename(file, '.html')}.png`;
  await page.screenshot({ path });
  const { size } = statSync(path);
  console.log(`${path}: ${size} bytes`);
  wrong += size > LARGEST ? 1 : 0;
}
await browser.close();
process.exit(wrong);
