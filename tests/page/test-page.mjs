// SPDX-License-Identifier: MIT
// The page of berth-web in Chromium, with a real cluster. Argument "full": more grants are measured. PICTURES=FOLDER keeps pictures, which are of
// this cluster; those that are compared: test-pictures.mjs.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { join, resolve } from 'node:path';
import { readFileSync, mkdirSync } from 'node:fs';
import * as c from './cluster.mjs';
import { situations } from './made.mjs';

const require = createRequire(resolve(process.env.PAGE_MODULES, 'package.json'));
const puppeteer = (await import(pathToFileURL(require.resolve('puppeteer-core')).href)).default;
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const full = process.argv.includes('full');
const sizes = [[1280, 800], [390, 844], [320, 568]];
let passed = 0, failed = 0;

async function test(name, body) {
  try {
    await body();
    passed++;
  } catch (error) {
    failed++;
    console.log('FAIL: page / ' + name + ': ' + error.message);
  }
}
function check(condition, text) {
  if (!condition) throw new Error(text);
}
const text = (page, selector) => page.$eval(selector, (element) => element.textContent);
const has = (page, selector, word) => c.await_(selector + ' with ' + word, async () => (await text(page, selector)).includes(word));
const isLive = (page) => page.evaluate(() => !document.body.classList.contains('old') && document.getElementById('age').textContent === 'live');

async function open(browser, width, height, hash = '') {
  const page = await browser.newPage();
  page.errors = [];
  page.on('pageerror', (error) => page.errors.push(error.message));
  page.on('console', (message) => { if (message.type() === 'error' && !/Failed to load|ERR_/.test(message.text())) page.errors.push(message.text()); });
  await page.setViewport({ width, height });
  await page.goto(c.url + hash);
  return page;
}

// One page of each size stays open through all situations: nothing is loaded again. Its colours change by media features.
const pages = [];
async function situation(name, ready) {
  await test(name, async () => {
    for (const [page, width, height] of pages) {
      await page.bringToFront();
      await ready(page);
      for (const scheme of ['light', 'dark']) {
        await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }, { name: 'prefers-reduced-motion', value: 'reduce' }]);
        const found = await page.evaluate(async () => (await window.axe.run(document)).violations.map((v) => v.id + ' at ' + v.nodes.map((n) => n.target).slice(0, 3)));
        check(found.length === 0, `${width}x${height} ${scheme}: ${found.join('; ')}`);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        check(wide <= width, `${width}x${height}: the page is ${wide} wide`);
        if (process.env.PICTURES) await page.screenshot({ path: join(process.env.PICTURES, `${name.replaceAll(' ', '-')}-${width}-${scheme}.png`) });
      }
      check(page.errors.length === 0, page.errors.join('; '));
    }
  });
}

async function grants(page) {
  const times = [];
  await page.bringToFront(); // a page behind another has no stream
  for (let i = 0; i < (full ? 100 : 12); i++) {
    const name = 'quick-' + i, begun = Date.now();
    c.hold(name, i % 2 ? 'ant' : 'bee', ['reports'], name, '3');
    await page.waitForFunction((n) => [...document.querySelectorAll('#hold-rows th')].some((th) => th.textContent.includes(n)), { polling: 20, timeout: 5000 }, name);
    times.push(Date.now() - begun);
  }
  times.sort((a, b) => a - b);
  const p95 = times[Math.ceil(times.length * 0.95) - 1];
  console.log(`a grant is on the page after ${times[times.length >> 1]} ms (median), ${p95} ms (95 %), ${times.length} grants`);
  check(p95 <= 1500, `95 % are on the page within ${p95} ms, not 1500`);
}
// The same document all the time: a page that loads again loses its mark.
async function comesBack(page, what, down, upAgain) {
  await page.bringToFront();
  await page.evaluate(() => { window.mark = 1; });
  await down();
  await page.waitForFunction(() => !document.getElementById('banner').hidden || document.body.classList.contains('old'), { timeout: 15000 });
  await upAgain();
  const begun = Date.now();
  await c.await_('live again after ' + what, async () => await isLive(page) && await page.evaluate(() => document.getElementById('banner').hidden), 15000);
  const took = Date.now() - begun;
  console.log(`live again ${took} ms after ${what} is back`);
  check(took <= 5000, `live again ${took} ms after ${what} is back`);
  check(await page.evaluate(() => window.mark) === 1, 'the page was loaded again');
}

async function acts(browser) {
  await c.end('web');
  await c.webUp('--actions');
  await c.berth('ant', 'run', '-p', 'reports', '--', 'true'); // nothing is granted or moved in grace
  const page = await open(browser, 1280, 800, '#pool=net');
  await c.await_('no banner', () => page.$eval('#banner', (banner) => banner.hidden)); // everything below it moves when it goes
  await page.waitForSelector('#pool-actions:not([hidden])');
  await page.click('#act-pause');
  check(await page.evaluate(() => document.activeElement.id) === 'd-no', 'the default is not No');
  await page.keyboard.press('Enter');
  check(!await page.$eval('#dialog', (d) => d.open), 'Enter does not close the dialog');
  check(!(await c.berth('ant', 'pools', '--json')).includes('"override": {'), 'No has done something');
  await page.click('#act-pause');
  await page.click('#d-yes');
  await has(page, '#d-error', 'nobody is logged in');
  await page.click('#d-no');
  await page.click('#user');
  await page.type('#d-token', c.token);
  await page.click('#d-yes');
  await has(page, '#user', 'Log out');
  await page.reload();
  await has(page, '#user', 'Log out');
  await page.waitForSelector('#pool-actions:not([hidden])');
  await page.click('#act-pause');
  await page.type('#d-reason', '<b>repair</b>');
  await page.click('#d-yes');
  await has(page, '#pool-rows', 'paused, <b>repair</b>');
  const pool = JSON.parse(await c.berth('bee', 'pools', '--json')).pools.find((p) => p.name === 'net');
  check(pool.limit === 0 && pool.override.reason === '<b>repair</b>', 'the pool is not paused');
  await page.click('#act-pause');
  await page.click('#d-yes');
  await c.await_('the end of the pause', async () => !(await c.berth('bee', 'pools', '--json')).includes('"override": {'));
  const places = async () => JSON.parse(await c.berth('ant', 'pools', 'db', '--json')).pools[0].queue.map((run) => run.name);
  for (const name of ['wide', 'middle', 'last']) { // whatever else holds db, the last one waits behind the middle one
    c.hold(name, 'bee', ['db:4'], name);
    if (name !== 'wide') await c.await_(name + ' in the queue', async () => (await places()).includes(name));
  }
  await page.evaluate(() => { location.hash = '#pool=db'; });
  const button = await page.waitForSelector('[aria-label="move bee:last to the front"]');
  await button.click();
  await page.click('#d-yes');
  await c.await_('the move', async () => (await places()).indexOf('last') < (await places()).indexOf('middle'));
  await page.click('#user');
  await c.end('web');
  await page.click('#d-yes');
  await has(page, '#d-error', 'No connection to berth-web');
  await page.click('#d-no');
  check(await text(page, '#user') === 'Log out', 'a logout that failed shows as one');
  await c.webUp('--actions'); // a new berth-web knows no logins
  await has(page, '#user', 'Log in');
  check(page.errors.length === 0, page.errors.join('; '));
  await page.close();
}

async function plain(browser) {
  const page = await browser.newPage();
  await page.setJavaScriptEnabled(false);
  const agrees = async () => { // the page has a picture that is up to a second old
    await page.goto(c.url);
    await page.waitForSelector('body.plain', { timeout: 5000 });
    const rows = await page.$$eval('table:first-of-type tr', (list) => list.map((tr) => [...tr.children].slice(0, 4).map((cell) => cell.textContent)));
    return JSON.parse(await c.berth('ant', 'pools', '--json')).pools.every((pool) => {
      const row = rows.find((cells) => cells[0] === pool.name);
      return row && row[1] === String(pool.used) && row[2] === String(pool.limit) && row[3] === String(pool.waiting);
    });
  };
  await c.await_('a page without a script that shows what berth shows', agrees);
  await page.close();
}

// By keyboard: from the name in the queue to the reason, and back.
async function explains(page, width) {
  await page.bringToFront();
  await page.evaluate(() => { location.hash = '#pool=db'; });
  const button = await page.waitForSelector('#wait-rows button.why');
  await button.focus();
  await page.keyboard.press('Enter');
  await has(page, '#w-pools', 'db x3: full: 4 of 4 used');
  check((await text(page, '#w-title')) === 'bee:reindex', 'it explains ' + await text(page, '#w-title'));
  check((await text(page, '#w-start')).startsWith('It is not known when it starts: '), 'the start: ' + await text(page, '#w-start'));
  await has(page, '#w-commands', 'berth limit db 7it starts at once');
  for (const scheme of ['light', 'dark']) {
    await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
    const found = await page.evaluate(async () => (await window.axe.run(document)).violations.map((v) => v.id + ' at ' + v.nodes.map((n) => n.target)));
    check(found.length === 0, `${width} ${scheme}: ${found.join('; ')}`);
    if (process.env.PICTURES) await page.screenshot({ path: join(process.env.PICTURES, `why-${width}-${scheme}.png`) });
  }
  await page.keyboard.press('Escape');
  check(await page.evaluate(() => document.activeElement.className) === 'why', 'the focus does not come back');
  await page.evaluate(() => { location.hash = ''; });
  check(page.errors.length === 0, page.errors.join('; '));
}

async function keyboard(page) {
  await page.bringToFront();
  await page.evaluate(() => { document.activeElement.blur(); window.scrollTo(0, 0); });
  for (let i = 0; i < 30; i++) {
    await page.keyboard.press('Tab');
    if (await page.evaluate(() => document.activeElement.textContent === 'reports')) break;
  }
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  check(outline !== 'none', 'the focus is not visible');
  await page.keyboard.press('Enter');
  await has(page, '#h-detail', 'reports');
}

// A frame changes lists in place: what stays keeps the focus, and two items that look the same are two rows.
async function lists(page) {
  await page.bringToFront();
  const found = await page.evaluate(() => {
    const list = document.createElement('ul');
    const draw = (keys) => rows(list, keys, (key) => key, (key) => {
      const item = make('li');
      item.append(make('button', '', key));
      return item;
    }, () => {});
    document.body.append(list);
    draw(['a', 'b', 'c']);
    list.lastChild.firstChild.focus();
    draw(['b', 'c', 'd']);
    const focus = document.activeElement.textContent;
    for (let i = 0; i < 5; i++) draw(['d', 'd', 'c']);
    const twice = list.textContent;
    draw([]);
    const n = list.children.length;
    list.remove();
    return { focus, twice, n };
  });
  check(found.focus === 'c', 'the focus is lost when an earlier row goes');
  check(found.twice === 'ddc' && found.n === 0, `two rows of one text: ${found.twice}, then ${found.n} rows`);
}
// The page has no stream while it is hidden or held. When it goes on, its old data is no outage.
async function goesOn(page) {
  await page.bringToFront();
  const banners = await page.evaluate(() => {
    const real = Date.now, list = [];
    const hide = (hidden) => {
      Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    };
    const pause = (begin, end) => {
      begin();
      Date.now = () => real() + 60000;
      drawAge();
      end();
      drawAge();
      list.push(document.getElementById('banner').textContent);
      Date.now = real;
      resume();
    };
    pause(() => hide(true), () => hide(false));
    pause(() => document.getElementById('hold').click(), () => document.getElementById('hold').click());
    delete document.hidden;
    return list;
  });
  check(banners.join('') === '', 'a page that goes on has a banner: ' + banners);
}

// Another pool that is chosen on a held page is shown as it was at that moment.
async function chosenHeld(page) {
  const choose = (pool) => page.evaluate((name) => { location.hash = '#pool=' + name; }, pool);
  await page.bringToFront();
  await choose('net');
  await page.waitForFunction(() => state.detail && state.detail.name === 'net');
  await page.click('#hold');
  await choose('db');
  await has(page, '#wait-rows', 'reindex');
  const first = await page.evaluate(() => state.detail);
  await page.evaluate(() => state.source.dispatchEvent(new MessageEvent('pool', { data: '{"name": "db"}' })));
  check(await page.evaluate((d) => JSON.stringify(state.detail) === JSON.stringify(d), first), 'a held page goes on');
  await page.click('#hold');
  await choose('');
}
// A pause may be for a day: the same time tomorrow is not today.
async function untilTomorrow(page) {
  const notes = await page.evaluate(() => [0, 86400000].map((ms) => poolNote({ limit: 0, used: 0, override: { until: new Date(now() + ms).toISOString() } })));
  check(/until \d\d:\d\d$/.test(notes[0]), 'today: ' + notes[0]);
  check(/until .*\d.*, \d\d:\d\d$/.test(notes[1]), 'tomorrow: ' + notes[1]);
}

// The names in an answer: "pools[].override.reason".
function names(value, at = '') {
  if (value === null || typeof value !== 'object') return [];
  if (Array.isArray(value)) return value.flatMap((item) => names(item, at + '[]'));
  return Object.entries(value).flatMap(([name, item]) => [at + '.' + name, ...(name === 'fields' ? [] : names(item, at + '.' + name))]);
}
// What berth-web sends has the same names as what the pictures are made of.
async function likeMade() {
  const reader = (await fetch(c.url + 'api/1/stream?pool=db')).body.getReader(), decoder = new TextDecoder();
  const sent = {};
  let text = '';
  while (!/\nevent: event\ndata: .*\n\n/.test(text)) text += decoder.decode((await reader.read()).value, { stream: true });
  await reader.cancel();
  for (const [, name, data] of text.matchAll(/^event: (\w+)\ndata: (.*)\n\n/gm)) sent[name] ??= JSON.parse(data); // the first are whole
  sent.hour = await (await fetch(c.url + 'api/1/timeline?pool=db')).json();
  for (const [name, key] of [['overview', 'overview'], ['pool', 'detail'], ['event', 'events'], ['hour', 'hour']]) {
    const real = new Set(names(sent[name])), made = new Set(situations.flatMap((s) => names(s[key])));
    for (const n of made) check(real.has(n) || /\.usual/.test(n), `berth-web sends no ${name}${n}`); // a run of a new job has no usual time
    for (const n of real) check(made.has(n) || n === '.holders[].pid', `no picture is made with ${name}${n}`);
  }
}

const browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM || '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] });
try {
  if (process.env.PICTURES) mkdirSync(process.env.PICTURES, { recursive: true });
  await c.up();
  await c.webUp();
  for (const [width, height] of sizes) {
    const page = await open(browser, width, height);
    await page.evaluate(axe);
    pages.push([page, width, height]);
  }
  const page = pages[0][0];
  await situation('idle', (p) => has(p, '#s-hold', '0'));
  for (const [i, host, pool, name] of [[1, 'ant', 'db:2', 'pg-dump'], [2, 'bee', 'db:2', 'import'], [3, 'bee', 'db:3', 'reindex'], [4, 'ant', 'net:2', 'upload'], [5, 'bee', 'reports:5', 'render']]) {
    c.hold(i, host, [pool], name);
    await has(page, '#pool-rows', 'db');
  }
  await situation('busy', (p) => has(p, '#s-hold', '11'));
  await test('why a run waits', async () => {
    for (const [p, width] of pages) await explains(p, width);
  });
  await c.berth('ant', 'limit', 'db', '2', '--reason', '<img src=x onerror=alert(1)>');
  await situation('over limit', (p) => has(p, '#pool-rows', '2 over its limit'));
  await test('like the pictures', likeMade);
  await test('what berth says is text', async () => {
    check((await text(page, '#pool-rows')).includes('<img src=x onerror=alert(1)>'), 'the reason is not shown');
    await page.evaluate(() => { location.hash = '#pool=db'; });
    await has(page, '#detail-text', "<img src=x onerror=document.title='broken'>");
    await has(page, '#wait-rows', 'parked: it needs more than the limit');
    check(await page.$$eval('main img', (list) => list.length) === 0, 'a text has become an element');
    await page.evaluate(() => { location.hash = ''; });
  });
  await c.berth('ant', 'limit', 'db', '--clear').catch(() => c.berth('ant', 'resume', 'db'));
  await c.berth('ant', 'pause', 'reports', '--reason', 'repair');
  await situation('paused', async (p) => { await has(p, '#pool-rows', 'paused'); await has(p, '#pool-rows', 'limits'); });
  await c.berth('ant', 'resume', 'reports');
  await test('keyboard', () => keyboard(page));
  await test('until tomorrow', () => untilTomorrow(page));
  await test('lists', () => lists(page));
  await test('goes on', () => goesOn(page));
  await test('another pool while held', () => chosenHeld(page));
  await test('without a script', () => plain(browser));
  await test('grants', async () => { await page.evaluate(() => { location.hash = '#pool=reports'; }); await grants(page); });
  await page.evaluate(() => { location.hash = ''; });
  await test('berth-web is restarted', () => comesBack(page, 'berth-web', () => c.end('web'), () => c.webUp()));
  await test('berthd is restarted', () => comesBack(page, 'berthd', () => c.end('ant', 'SIGKILL'), () => c.hostUp('ant')));
  await test('Redis is restarted', () => comesBack(page, 'Redis', () => c.end('redis', 'SIGKILL'), () => c.redisUp()));
  await c.end('redis', 'SIGKILL');
  await situation('Redis away', (p) => has(p, '#banner', 'Redis is away'));
  await c.redisUp();
  await test('actions', () => acts(browser));
  await c.end('ant', 'SIGKILL');
  await situation('berthd away', (p) => has(p, '#banner', 'berthd does not answer'));
} catch (error) {
  failed++;
  console.log('FAIL: page / the scene: ' + error.message);
} finally {
  await browser.close();
  await c.endAll();
}
console.log(`${passed} passed, ${failed} failed, 0 skipped`);
process.exit(failed > 0 ? 1 : 0);
