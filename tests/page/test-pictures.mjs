// SPDX-License-Identifier: MIT
// Compares the page, with made data, with the pictures in tests/page/pictures. Argument "write": writes these pictures and that of README.md again.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { join, resolve } from 'node:path';
import { createServer } from 'node:http';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync, existsSync, mkdirSync, rmSync } from 'node:fs';
import { AT, situations } from './made.mjs';
import { pack } from './picture.mjs';

const require = createRequire(resolve(process.env.PAGE_MODULES, 'package.json'));
const load = async (name) => (await import(pathToFileURL(require.resolve(name)).href)).default;
const [puppeteer, pixelmatch, { PNG }] = [await load('puppeteer-core'), await load('pixelmatch'), require('pngjs')];
const DIFFERENT_MAX = 0.003; // of all pixels; the palette of the files alone makes up to 0.0013
const sizes = [[1280, 800], [390, 844], [320, 568]];
const folder = 'tests/page/pictures', left = join(process.env.BUILD, 'page', 'different');
const readme = { situation: 'busy', width: 1280, height: 860, file: 'doc/page.webp' };
const writes = process.argv.includes('write');
let passed = 0, failed = 0, skipped = 0;

/* --- berth-web, made --- */

const types = { html: 'text/html; charset=utf-8', css: 'text/css', js: 'text/javascript', svg: 'image/svg+xml' };
let shown = null;

function answer(request, response) {
  const url = new URL(request.url, 'http://localhost'), file = url.pathname === '/' ? 'index.html' : url.pathname.slice(1);
  const send = (name, data) => response.write(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
  if (file === 'api/1/timeline') {
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify(shown.hour));
  } else if (file === 'api/1/stream') { // stays open, as the page's clock stands still
    response.setHeader('Content-Type', 'text/event-stream');
    send('overview', shown.overview);
    if (shown.gone) send('gone', shown.gone);
    if (url.searchParams.get('pool') === shown.detail.name) send('pool', shown.detail);
    send('event', shown.events);
  } else {
    response.setHeader('Content-Type', types[file.split('.').pop()] || 'text/plain');
    response.end(readFileSync(join('web/page', file)));
  }
}

/* --- the browser --- */

async function openPage(browser) {
  const page = await browser.newPage();
  page.errors = [];
  page.on('pageerror', (error) => page.errors.push(error.message));
  await page.emulateTimezone('UTC');
  await page.evaluateOnNewDocument((at) => { Date.now = () => at; }, AT);
  return page;
}
async function show(page, url, situation, width, height) {
  shown = situation;
  await page.setViewport({ width, height });
  await page.goto('about:blank'); // another fragment alone does not load the page again
  await page.goto(url + (width <= 720 ? situation.hash : ''));
  await page.waitForFunction((s) => state.overview && state.detail && state.events.length === s.events.events.length &&
    state.bars.size === s.hour.bars.length && Boolean(state.gone) === Boolean(s.gone), { polling: 20, timeout: 10000 }, situation);
}
async function take(page, scheme, type = 'png') {
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }, { name: 'prefers-reduced-motion', value: 'reduce' }]);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  return Buffer.from(await page.screenshot(type === 'webp' ? { type, quality: 80 } : { type }));
}

/* --- compare --- */

// What pictures depend on besides the page.
async function circumstances(browser) {
  const release = /^VERSION_CODENAME=(.*)$/m.exec(readFileSync('/etc/os-release', 'utf8'));
  const fonts = ['DejaVuSans.ttf', 'DejaVuSans-Bold.ttf'].map((name) => join('/usr/share/fonts/truetype/dejavu', name)).filter(existsSync);
  const hash = createHash('sha256');
  for (const font of fonts) hash.update(readFileSync(font));
  return `${(await browser.version()).replace(/^\w+\//, 'Chromium ').replace(/\..*/, '')} of ${release ? release[1] : 'no Debian'}, ${fonts.length} fonts ${hash.digest('hex').slice(0, 12)}\n`;
}
function compare(name, file, others) {
  const now = PNG.sync.read(file), path = join(folder, name + '.png');
  if (!existsSync(path)) throw new Error(`there is no ${path}: tests/page/run.sh write`);
  const before = PNG.sync.read(readFileSync(path));
  if (before.width !== now.width || before.height !== now.height) throw new Error(`${path} has another size`);
  const difference = new PNG({ width: now.width, height: now.height });
  const n = pixelmatch(before.data, now.data, difference.data, now.width, now.height, { threshold: 0.05, includeAA: true });
  const share = n / (now.width * now.height);
  others.push(share);
  if (share <= DIFFERENT_MAX) return;
  mkdirSync(left, { recursive: true });
  writeFileSync(join(left, name + '.png'), file);
  writeFileSync(join(left, name + '-difference.png'), PNG.sync.write(difference));
  throw new Error(`${(100 * share).toFixed(2)} % of ${path} differ: ${join(left, name)}.png, ${join(left, name)}-difference.png`);
}

const server = createServer(answer).listen(0, '127.0.0.1');
const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-lcd-text', '--font-render-hinting=none', '--force-color-profile=srgb', '--lang=en-US'],
  env: { ...process.env, FONTCONFIG_FILE: resolve('tests/page/fonts.conf') },
});
try {
  const here = await circumstances(browser), madeWith = join(folder, 'made-with');
  const isOther = !existsSync(madeWith) || readFileSync(madeWith, 'utf8') !== here, shares = [];
  const page = await openPage(browser);
  rmSync(left, { recursive: true, force: true });
  if (writes) mkdirSync(folder, { recursive: true });
  for (const situation of situations)
    for (const [width, height] of sizes) {
      await show(page, `http://127.0.0.1:${server.address().port}/`, situation, width, height);
      for (const scheme of ['light', 'dark']) {
        const name = `${situation.name}-${width}-${scheme}`, file = await take(page, scheme);
        try {
          if (writes) writeFileSync(join(folder, name + '.png'), pack(PNG.sync.read(file)));
          else compare(name, file, shares);
          passed++;
        } catch (error) {
          if (isOther && process.env.CI !== 'true') skipped++;
          else failed++;
          console.log(`${isOther && process.env.CI !== 'true' ? 'SKIP' : 'FAIL'}: page / pictures: ${error.message}`);
        }
      }
      if (page.errors.length > 0) throw new Error(page.errors.join('; '));
    }
  if (writes) {
    await show(page, `http://127.0.0.1:${server.address().port}/`, situations.find((s) => s.name === readme.situation), readme.width, readme.height);
    writeFileSync(readme.file, await take(page, 'light', 'webp'));
    writeFileSync(madeWith, here);
  }
  if (!writes) console.log(`${shares.length} pictures differ by ${(100 * Math.max(...shares)).toFixed(3)} % at most`);
  if (!writes && isOther && skipped + failed > 0) console.log(`the pictures are of ${readFileSync(madeWith, 'utf8').trim()}; this is ${here.trim()}`);
} catch (error) {
  failed++;
  console.log('FAIL: page / pictures: ' + error.message);
} finally {
  await browser.close();
  server.closeAllConnections();
  server.close();
}
console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
process.exit(failed > 0 ? 1 : 0);
