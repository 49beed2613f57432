// Opens pages in a real browser, narrow and wide, in light and dark, and says what is wrong with them:
//   node look.mjs PICTURES PAGE…        (files, or addresses of `nietz view`)
// A page asks for nothing but itself and what its own server has, writes no error, is no wider than the screen, and has no
// fault that axe-core knows. Its pictures are kept in the folder PICTURES. What a page took to be seen is told in milliseconds.
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, resolve } from 'node:path';
import { chromium } from 'playwright-core';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const [pictures, ...pages] = process.argv.slice(2);
const program = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
mkdirSync(pictures, { recursive: true });
let wrong = 0;
const say = (page, what) => {
  wrong += 1;
  console.log(`${page}: ${what}`);
};

const browser = await chromium.launch({ executablePath: program.find(existsSync), args: ['--no-sandbox', '--disable-gpu'] });
for (const given of pages) {
  const address = given.includes('://') ? given : `file://${resolve(given)}`;
  const name = given.includes('://') ? new URL(given).pathname.split('/').slice(2).join('-') || 'runs' : basename(given, '.html');
  for (const width of [400, 1280]) {
    for (const colorScheme of ['light', 'dark']) {
      const shown = `${name} ${width} ${colorScheme}`;
      const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, reducedMotion: 'reduce' });
      const page = await context.newPage();
      const own = address.startsWith('file:') ? address : new URL(address).origin;
      page.on('request', request => {
        if (!request.url().startsWith(own)) say(shown, `asks for ${request.url()}`);
      });
      page.on('console', message => message.type() === 'error' && say(shown, message.text()));
      page.on('pageerror', error => say(shown, error.message));
      page.on('dialog', dialog => {
        say(shown, `a dialog: ${dialog.message()}`);
        dialog.dismiss();
      });
      await page.goto(address, { waitUntil: 'load' });
      const { load, paint } = await page.evaluate(async () => {
        // A page may be loaded before it is painted.
        const painted = await new Promise(resolve => {
          new PerformanceObserver(list => list.getEntriesByName('first-contentful-paint').forEach(resolve))
            .observe({ type: 'paint', buffered: true });
        });
        const { loadEventEnd } = performance.getEntriesByType('navigation')[0];
        return { load: Math.round(loadEventEnd), paint: Math.round(painted.startTime) };
      });
      const [latestPaint, latestLoad] = (process.env.LOOK_LIMITS ?? ',').split(',');
      if (latestPaint && paint > latestPaint) say(shown, `seen after ${paint} ms, and not ${latestPaint}`);
      if (latestLoad && load > latestLoad) say(shown, `loaded after ${load} ms, and not ${latestLoad}`);
      console.log(`${shown}: first paint ${paint} ms, load ${load} ms`);
      await page.screenshot({ path: `${pictures}/${name}-${width}-${colorScheme}.png`, timeout: 120_000 });
      const room = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (room > 0) say(shown, `${room} pixels wider than the screen`);
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => axe.run(document, {
        // WCAG 2.1 AA. Which headings stand in what was said is its author's matter.
        runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'],
        resultTypes: ['violations'],
      }));
      for (const { id, nodes } of violations) say(shown, `${id}: ${nodes.length} × ${nodes[0].html.slice(0, 160)}`);
      await context.close();
    }
  }
}
await browser.close();
console.log(wrong === 0 ? 'nothing is wrong' : `${wrong} things are wrong`);
process.exit(wrong === 0 ? 0 : 1);
