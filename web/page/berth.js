/* SPDX-License-Identifier: MIT */
/* The live page of berth-web. All texts of berth are set by textContent. */
"use strict";

const $ = (id) => document.getElementById(id);
const OLD_MS = 5000;      /* data older than this is grey */
const HOUR_MS = 3600000;
const REFETCH_MS = 60000; /* how often the page gets the last hour again */
const SPEAK_MS = 10000;
const CELLS_MAX = 40;     /* permits that are drawn one by one */
const LANES_MAX = 24;
const EVENTS_MAX = 60;
const SVG = "http://www.w3.org/2000/svg";

const state = {
  overview: null, pools: new Map(), hosts: new Map(), pool: null, detail: null, events: [], gone: null,
  skew: 0,          /* the server's clock minus the browser's, ms */
  drawnAt: 0,       /* when the picture was true, in ms of the browser's clock */
  source: null, hold: false, bars: new Map(), barsAt: 0, spokenAt: 0, spoken: "", opened: 0, dropped: 0,
};

/* --- words --- */

function duration(ms) {
  const s = Math.max(0, ms) / 1000;
  if (s < 10) return s.toFixed(1) + "s";
  if (s < 60) return Math.floor(s) + "s";
  if (s < 600) return Math.floor(s / 60) + "m" + String(Math.floor(s % 60)).padStart(2, "0") + "s";
  if (s < 3600) return Math.floor(s / 60) + "m";
  if (s < 86400) return Math.floor(s / 3600) + "h" + String(Math.floor(s / 60 % 60)).padStart(2, "0") + "m";
  return Math.floor(s / 86400) + "d" + Math.floor(s / 3600 % 24) + "h";
}
const now = () => Date.now() + state.skew;
const short = (ms) => ms < 60000 ? Math.floor(Math.max(0, ms) / 1000) + "s" : duration(ms);
const clock = (ms, seconds) => new Date(ms).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: seconds ? "2-digit" : undefined, hour12: false });
/* The time of an instant, with its day unless that is today. */
const when = (ms) => (new Date(ms).toDateString() === new Date(now()).toDateString() ? "" :
  new Date(ms).toLocaleDateString([], { day: "numeric", month: "short" }) + ", ") + clock(ms);
const plural = (n, one, many) => n + " " + (n === 1 ? one : many || one + "s");

/* --- the document --- */

function set(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
function make(tag, name, text) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text !== undefined) element.textContent = text;
  return element;
}
function show(element, visible) {
  if (element.hidden === visible) element.hidden = !visible;
}
/* Makes the rows of a table body match the items and their order. A row that stays keeps its element. It also keeps the
   focus, unless its place among the rows that stay changes, because an element that moves loses it. */
function rows(body, items, key, build, update) {
  const ids = new Set(items.map(key)), have = new Map();
  for (const row of [...body.children]) {
    const id = row.dataset.key;
    if (ids.has(id) && !have.has(id)) have.set(id, row);
    else row.remove();
  }
  let at = body.firstElementChild;
  for (const item of items) {
    const id = key(item);
    let row = have.get(id);
    if (row) have.delete(id);
    else {
      row = build(item);
      row.dataset.key = id;
    }
    if (row === at) at = at.nextElementSibling;
    else body.insertBefore(row, at);
    update(row, item);
  }
}
function color(name) {
  let hash = 0;
  for (const c of name) hash = Math.imul(hash ^ c.codePointAt(0), 0x9e3779b1) >>> 0;
  return "c" + (hash >>> 29);
}
function row(cells) {
  const tr = document.createElement("tr");
  for (const [tag, name] of cells) {
    const cell = make(tag, name);
    if (tag === "th") cell.scope = "row";
    tr.append(cell);
  }
  return tr;
}

/* --- pools --- */

function poolNote(pool) {
  const notes = [];
  if (pool.override) {
    if (pool.limit === 0) notes.push("‖ paused");
    else notes.push("limit set" + (pool.configured ? " (config " + pool.configured + ")" : ""));
    if (pool.override.until) notes.push("until " + when(Date.parse(pool.override.until)));
    if (pool.override.reason) notes.push(pool.override.reason);
  }
  if (pool.used > pool.limit && pool.limit > 0) notes.push("▲ " + (pool.used - pool.limit) + " over its limit");
  if (pool.limits_differ) notes.push("≠ limits" + (pool.lowest && pool.lowest.host ? ": lowest on " + pool.lowest.host : ""));
  return notes.join(", ");
}
function drawBar(bar, pool) {
  const paused = pool.limit === 0, limit = paused ? pool.configured || 0 : pool.limit, full = Math.max(limit, pool.used, 1);
  bar.className = "bar" + (limit > 1 && limit <= CELLS_MAX && pool.used <= limit ? " cells" : "") +
    (pool.used > limit ? " over" : "") + (paused ? " paused" : "");
  bar.style.setProperty("--n", String(full));
  bar.firstChild.style.width = (100 * pool.used / full) + "%";
}
function buildPool(pool) {
  const tr = row([["th"], ["td", "use"], ["td", "n"], ["td", "note"], ["td", "n wait"], ["td", "n oldest"]]);
  const link = make("a", "", pool.name);
  link.href = "#pool=" + encodeURIComponent(pool.name);
  tr.children[0].append(link);
  if (pool.scope === "host") tr.children[0].append(make("span", "scope", "this host"));
  const bar = make("div", "bar");
  bar.setAttribute("aria-hidden", "true");
  bar.append(make("i"));
  tr.children[1].append(bar);
  return tr;
}
function updatePool(tr, pool) {
  const [name, use, used, note, wait, oldest] = tr.children;
  drawBar(use.firstChild, pool);
  set(used, pool.used + " / " + pool.limit);
  set(note, poolNote(pool));
  set(wait, String(pool.waiting));
  set(oldest, pool.oldest ? short(now() - pool.oldest.since_ms) : "");
  if (pool.name === state.pool) name.firstChild.setAttribute("aria-current", "true");
  else name.firstChild.removeAttribute("aria-current");
}
const sorted = (map) => [...map.values()].sort((a, b) => (a.name || a.host).localeCompare(b.name || b.host));

function drawPools() {
  rows($("pool-rows"), sorted(state.pools), (pool) => pool.name, buildPool, updatePool);
  const more = state.overview.pools_more;
  show($("pools-more"), more > 0);
  set($("pools-more"), "and " + plural(more, "more pool") + " that are not shown");
}

/* --- summary and warnings --- */

function warnings() {
  const list = [], redis = state.overview.redis;
  if (redis && redis.state !== "connected") list.push("Redis: " + redis.state + (redis.error ? ": " + redis.error : ""));
  if (redis && redis.grace_ms > 0) list.push("grace period: nothing is granted for " + short(redis.grace_ms));
  if (state.overview.recovering) list.push("berthd has just started and does not know all runs yet");
  for (const pool of sorted(state.pools)) {
    const note = poolNote(pool);
    if (note && (pool.override || pool.limits_differ || pool.used > pool.limit)) list.push("pool " + pool.name + ": " + note);
  }
  for (const host of sorted(state.hosts)) {
    if (host.late_ms > 0) list.push("host " + host.host + ": not seen for " + short(host.late_ms));
    if (host.drained) list.push("host " + host.host + ": drained");
  }
  if (state.overview.malformed > 0) list.push(plural(state.overview.malformed, "value") + " in Redis that no berthd wrote");
  return list;
}
function drawSummary() {
  const o = state.overview;
  let used = 0, waiting = 0, oldest = Infinity;
  for (const pool of state.pools.values()) {
    used += pool.used;
    waiting += pool.waiting;
    if (pool.oldest) oldest = Math.min(oldest, pool.oldest.since_ms);
  }
  const list = warnings();
  set($("title"), o.title || "berth");
  set($("where"), (o.namespace ? "namespace " + o.namespace : "") + (o.host ? ", seen by " + o.host : ""));
  document.title = (o.title || "berth") + (o.namespace ? " · " + o.namespace : "");
  set($("s-redis"), o.redis ? o.redis.state : "-");
  $("s-redis").className = o.redis && o.redis.state === "connected" ? "" : "bad";
  set($("s-hosts"), String(o.hosts_n));
  set($("t-hosts"), o.hosts_n === 1 ? "host" : "hosts");
  set($("s-hold"), String(used));
  set($("s-wait"), String(waiting));
  set($("s-oldest"), oldest === Infinity ? "none" : short(now() - oldest));
  show($("warnings"), list.length > 0);
  set($("n-warnings"), "▲ " + plural(list.length, "warning"));
  rows($("warning-list"), list, (text) => text, (text) => make("li", "", text), () => {});
  speak(plural(used, "permit") + " held, " + waiting + " waiting" + (list.length ? ", " + plural(list.length, "warning") : ""));
}
/* Tells a screen reader the summary when it has changed, at most every SPEAK_MS. */
function speak(text) {
  if (text === state.spoken || Date.now() - state.spokenAt < SPEAK_MS) return;
  state.spoken = text;
  state.spokenAt = Date.now();
  $("spoken").textContent = text;
}

/* --- one pool --- */

function buildRun(claim, waits) {
  const cells = [["th"], ["td", "n"], ["td", "n"], ["td", "row-act"]];
  const tr = row(waits ? [["td", "place"], ...cells] : cells), cell = tr.querySelector("th");
  const dot = make("span", "dot " + color(claim.name));
  dot.setAttribute("aria-hidden", "true");
  const name = waits ? make("button", "why") : document.createDocumentFragment();
  name.append(make("span", "host", claim.host + ":"), document.createTextNode(claim.name));
  if (waits) {
    name.type = "button";
    name.setAttribute("aria-haspopup", "dialog");
    name.onclick = () => explain(claim);
  }
  cell.append(dot, name, make("span", "usual"));
  cell.title = "run " + claim.claim;
  return tr;
}
function usualText(claim, ms) {
  const usual = claim.usual;
  if (!usual || !usual.q_ms || usual.q_ms.length < 3) return "";
  const low = usual.q_ms[0], high = usual.q_ms[usual.q_ms.length - 1];
  return ms > high ? "longer than usual" : "usually " + short(low) + " to " + short(high);
}
function actionButton(cell, label, name, run) {
  if (!cell.firstChild) {
    const button = make("button", "", label);
    button.type = "button";
    cell.append(button);
  }
  cell.firstChild.setAttribute("aria-label", name);
  cell.firstChild.onclick = run;
}
function drawDetail() {
  const known = state.pools.get(state.pool), d = state.detail && state.detail.name === state.pool ? state.detail : null;
  const pool = known || d;
  show($("detail"), Boolean(state.pool && pool));
  show($("hour"), Boolean(state.pool && pool));
  if (!state.pool || !pool) return;
  set($("h-detail"), state.pool);
  set($("detail-use"), d && d.unknown ? "there is no such pool" : pool.used + " of " + pool.limit + " used, " + pool.waiting + " waiting");
  const text = known ? [known.description, poolNote(known)].filter(Boolean).join(" · ") : "";
  show($("detail-text"), Boolean(text));
  set($("detail-text"), text);
  show($("pool-actions"), Boolean(state.overview && state.overview.actions));
  set($("act-pause"), known && known.override ? "End override…" : "Pause…");
  const holders = (d && d.holders) || [], queue = (d && d.queue) || [], acts = state.overview && state.overview.actions;
  rows($("hold-rows"), holders, (c) => c.claim, (c) => buildRun(c, false), (tr, c) => {
    const ms = now() - Date.parse(c.since);
    set(tr.querySelector(".usual"), usualText(c, ms));
    set(tr.children[1], "x" + c.permits);
    set(tr.children[2], short(ms));
    if (acts) actionButton(tr.children[3], "Revoke…", "revoke " + c.host + ":" + c.name, () => askRevoke(c));
  });
  rows($("wait-rows"), queue, (c) => c.claim, (c) => buildRun(c, true), (tr, c) => {
    set(tr.children[0], c.position > 0 ? String(c.position) : "–");
    set(tr.querySelector(".usual"), c.position > 0 || state.overview.stale ? "" : "parked: it needs more than the limit");
    set(tr.children[2], "x" + c.permits);
    set(tr.children[3], short(now() - c.since_ms));
    if (acts) actionButton(tr.children[4], "To front…", "move " + c.host + ":" + c.name + " to the front", () => askMove(c));
  });
  const held = holders.reduce((sum, c) => sum + c.permits, 0);
  more("holds-more", d ? (holders.length === 0 ? "nobody" : pool.used > held ? "and " + plural(pool.used - held, "permit") + " of other runs" : "") : "");
  more("waits-more", d ? (queue.length === 0 ? "nobody" : pool.waiting > queue.length ? "and " + (pool.waiting - queue.length) + " more" : "") : "");
}
function more(id, text) {
  show($(id), text !== "");
  set($(id), text);
}

/* --- why a run waits --- */

function startText(e) {
  const estimate = e.estimate, at = now();
  if (e.state !== "waiting") return "It has its permits.";
  if (!estimate) return "It is not known when it starts" + (e.no_estimate ? ": " + e.no_estimate : "") + ".";
  return "It starts in " + short(estimate.low_ms) + " to " + short(estimate.high_ms) + " (" + clock(at + estimate.low_ms, true) + " to " +
    clock(at + estimate.high_ms, true) + "), with 8 chances of 10" +
    (estimate.open ? "; later if a run goes on that has taken longer than ever." : ".");
}
function soonerText(change) {
  const starts = change.starts || [], list = starts.slice(0, 3).join(", ") + (starts.length > 3 ? " and " + (starts.length - 3) + " more" : "");
  const when = change.low_ms === undefined ? "it starts at once" : "it starts in " + short(change.low_ms) + " to " + short(change.high_ms);
  return when + (starts.length > 1 ? ", and so do others: " + list : "") + (change.stops ? "; stops " + change.stops : "");
}
function fillWhy(e) {
  set($("w-start"), startText(e));
  rows($("w-pools"), e.pools || [], (pool) => pool.pool, () => make("li"), (li, pool) => {
    const ahead = (pool.ahead || []).slice(0, 3).map((c) => c.host + ":" + c.name + " x" + c.permits);
    const before = (pool.ahead || []).length + (pool.ahead_more || 0);
    set(li, pool.pool + " x" + pool.wants + ": " + pool.why.text + (before > 0 ? "; before it: " + ahead.join(", ") +
      (before > ahead.length ? " and " + (before - ahead.length) + " more" : "") : ""));
  });
  show($("w-sooner"), Boolean(e.sooner && e.sooner.length));
  rows($("w-commands"), e.sooner || [], (change) => change.do.join(" "), (change) => {
    const li = make("li");
    li.append(make("code", "", change.do.join(" ")), make("span", "more"));
    return li;
  }, (li, change) => set(li.children[1], soonerText(change)));
  set($("w-seen"), "As seen at " + clock(now(), true) + ". Limits that change and runs with a head start are not foreseen.");
}
async function explain(claim) {
  const dialog = $("why");
  set($("w-title"), claim.host + ":" + claim.name);
  for (const id of ["w-start", "w-seen"]) set($(id), "");
  for (const id of ["w-pools", "w-commands"]) $(id).replaceChildren();
  show($("w-sooner"), false);
  dialog.dataset.claim = claim.claim;
  if (!dialog.open) dialog.showModal();
  $("w-close").focus();
  let text = "";
  try {
    const answer = await fetch("api/1/explain/" + encodeURIComponent(claim.claim), { cache: "no-store" });
    if (answer.status === 404) text = "It does not wait any more, or the queue is too long to list it.";
    else if (!answer.ok) text = await answer.text();
    else {
      const data = await answer.json();
      if (dialog.dataset.claim === claim.claim) fillWhy(data.explained[0]);
    }
  } catch (error) { text = "No connection to berth-web."; }
  if (text && dialog.dataset.claim === claim.claim) set($("w-start"), text);
}

/* --- the last hour --- */

function barOf(list) {
  const [claim, host, name, permits, waited, held, end, result] = list;
  return { claim, host, name, permits, waited, held, end, result };
}
async function fetchHour() {
  const pool = state.pool;
  if (!pool) return;
  state.barsAt = Date.now();
  try {
    const answer = await fetch("api/1/timeline?pool=" + encodeURIComponent(pool), { cache: "no-store" });
    const data = await answer.json();
    if (pool !== state.pool) return;
    state.bars = new Map(data.bars.map((list) => [list[0] + (list[5] || list[4]), barOf(list)]));
    state.dropped = data.dropped;
    drawHour();
  } catch (error) { /* if the server is away, the page shows this with the next frame */ }
}
/* Continues the bars from a frame. The bars of the server replace them every REFETCH_MS. */
function sampleHour(d) {
  const open = new Map();
  for (const [key, bar] of state.bars) if (!bar.end) open.set(bar.claim, [key, bar]);
  const at = now();
  for (const c of d.holders || []) {
    const known = open.get(c.claim);
    if (known) known[1].held = known[1].held || Date.parse(c.since);
    else state.bars.set(c.claim + c.since, { claim: c.claim, host: c.host, name: c.name, permits: c.permits, held: Date.parse(c.since) });
    open.delete(c.claim);
  }
  for (const c of d.queue || []) {
    if (!open.has(c.claim)) state.bars.set(c.claim + c.since_ms, { claim: c.claim, host: c.host, name: c.name, permits: c.permits, waited: c.since_ms });
    open.delete(c.claim);
  }
  const whole = (d.holders || []).reduce((sum, c) => sum + c.permits, 0) >= d.used && (d.queue || []).length >= d.waiting;
  if (whole) for (const [, bar] of open.values()) bar.end = at;
}
function noteResult(run, result) {
  for (const bar of state.bars.values()) if (bar.claim === run) bar.result = result;
}
/* Gives each bar as many lanes as it has permits: the lowest that are free. */
function assign(bars, until, count) {
  const free = new Array(count).fill(0);
  for (const bar of bars) {
    bar.lanes = [];
    for (let i = 0; i < count && bar.lanes.length < bar.permits; i++)
      if (free[i] <= bar.held + 250) { /* an end is seen up to a second late */
        free[i] = bar.end || until;
        bar.lanes.push(i);
      }
    for (let i = 0; i < count && bar.lanes.length < bar.permits; i++)
      if (!bar.lanes.includes(i) && free[i] <= bar.held + 1500) {
        free[i] = bar.end || until;
        bar.lanes.push(i);
      }
  }
}
function draw(parent, tag, attributes, text) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  parent.append(element);
  return element;
}
/* Neighbouring lanes of a bar are one rectangle. */
function spans(lanes) {
  const list = [];
  for (const lane of [...lanes].sort((a, b) => a - b)) {
    const last = list[list.length - 1];
    if (last && last[1] === lane - 1) last[1] = lane;
    else list.push([lane, lane]);
  }
  return list;
}
function drawHour() {
  const chart = $("chart"), pool = state.pools.get(state.pool) || state.detail;
  if (!pool || $("hour").hidden || chart.clientWidth === 0) return;
  const until = now(), from = until - HOUR_MS;
  for (const [key, bar] of state.bars) if (bar.end && bar.end < from) state.bars.delete(key);
  const bars = [...state.bars.values()].filter((bar) => bar.held).sort((a, b) => a.held - b.held);
  const first = [...state.bars.values()].reduce((min, bar) => Math.min(min, bar.waited || bar.held || until), until);
  /* If the page knows only a few minutes, they fill the chart. */
  const length = Math.min(HOUR_MS, Math.max(120000, until - first)), begin = until - length;
  const count = Math.min(LANES_MAX, Math.max(pool.limit || 0, pool.used || 0, 1));
  assign(bars, until, count);
  const width = chart.clientWidth, left = 26, right = 4, high = count > 10 ? 13 : 18, queueTop = count * high + 6, queueHigh = 26;
  const height = queueTop + queueHigh + 18, x = (ms) => left + (width - left - right) * (ms - begin) / length;
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 " + width + " " + height);
  svg.setAttribute("height", height);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", plural(bars.length, "run") + " held permits of " + state.pool + " in the last " + short(length) +
    ", " + bars.filter((bar) => bar.result).length + " of them failed");
  for (let i = 0; i < count; i++) {
    draw(svg, "rect", { class: "lane", x: left, y: i * high + 1, width: width - left - right, height: high - 2, rx: 2 });
    if (count <= 10 || i % 5 === 4) draw(svg, "text", { class: "tick", x: left - 7, y: i * high + high / 2 + 4, "text-anchor": "end" }, i + 1);
  }
  drawTicks(svg, x, begin, until, height, width);
  drawQueue(svg, x, begin, until, queueTop, queueHigh, left);
  for (const bar of bars) drawRun(svg, bar, x, begin, until, high);
  chart.replaceChildren(svg);
  more("chart-more", state.dropped ? "not kept: " + plural(state.dropped, "older bar") : (pool.limit || 0) > count ? "the first " + count + " permits are drawn" : "");
}
function drawTicks(svg, x, begin, until, height, width) {
  const steps = [15000, 30000, 60000, 120000, 300000, 600000, 900000], room = width / 90;
  const step = steps.find((s) => (until - begin) / s <= room) || 900000;
  for (let t = Math.ceil(begin / step) * step; t < until; t += step) {
    if (x(t) > width - 24) break;
    draw(svg, "line", { class: "grid", x1: x(t), x2: x(t), y1: 0, y2: height - 16 });
    draw(svg, "text", { class: "tick", x: x(t), y: height - 4, "text-anchor": "middle" }, clock(t, step < 60000));
  }
}
/* Draws how many runs waited, as steps. */
function drawQueue(svg, x, begin, until, top, high, left) {
  const changes = [];
  for (const bar of state.bars.values()) {
    if (!bar.waited) continue;
    changes.push([Math.max(bar.waited, begin), 1], [bar.held || bar.end || until, -1]);
  }
  changes.sort((a, b) => a[0] - b[0]);
  let n = 0, most = 0;
  for (const [, by] of changes) most = Math.max(most, n += by);
  draw(svg, "text", { class: "tick", x: left - 7, y: top + 10, "text-anchor": "end" }, most || "");
  if (most === 0) return;
  let path = "M" + x(begin) + " " + (top + high);
  n = 0;
  for (const [at, by] of changes) {
    if (at < begin) { n += by; continue; }
    path += "H" + x(at).toFixed(1);
    n += by;
    path += "V" + (top + high - high * n / most).toFixed(1);
  }
  draw(svg, "path", { class: "wait", d: path + "H" + x(until).toFixed(1) + "V" + (top + high) + "Z" });
}
function drawRun(svg, bar, x, begin, until, high) {
  const a = x(Math.max(bar.held, begin)), b = Math.max(x(bar.end || until), a + 1.5), bad = bar.result ? " bad" : "";
  if (b < x(begin)) return;
  const label = bar.host + ":" + bar.name + " x" + bar.permits + ", " + clock(bar.held, true) + ", " + short((bar.end || until) - bar.held) +
    (bar.result ? ", " + bar.result : "");
  for (const [low, top] of spans(bar.lanes)) {
    const rect = draw(svg, "rect", { class: color(bar.name) + bad, x: a.toFixed(1), y: low * high + 1, width: (b - a).toFixed(1), height: (top - low + 1) * high - 2, rx: 2 });
    draw(rect, "title", {}, label);
    const middle = (low + top + 1) / 2 * high + 4;
    if (bar.result && b - a > 12) draw(svg, "text", { class: "bad", x: (b - 11).toFixed(1), y: middle }, "✕");
    if (b - a > bar.name.length * 6.4 + (bar.result ? 20 : 8)) draw(svg, "text", { x: (a + 4).toFixed(1), y: middle, "pointer-events": "none" }, bar.name);
  }
}

/* --- hosts and events --- */

function hostNote(host) {
  const notes = [];
  if (host.late_ms > 0) notes.push("not seen for " + short(host.late_ms));
  if (host.drained) notes.push("drained");
  if (host.limits && host.limits.length) notes.push("≠ " + host.limits.map((l) => l.pool + " " + l.limit).join(", "));
  return notes.join("; ");
}
function drawHosts() {
  rows($("host-rows"), sorted(state.hosts), (host) => host.session, (host) => {
    const tr = row([["th"], ["td"], ["td", "n"], ["td", "note"]]);
    tr.children[0].textContent = host.host;
    return tr;
  }, (tr, host) => {
    set(tr.children[1], host.version);
    set(tr.children[2], String(host.claims));
    set(tr.children[3], hostNote(host));
  });
  more("hosts-more", state.overview.hosts_more > 0 ? "and " + plural(state.overview.hosts_more, "more host") : "");
}
function eventText(event) {
  const f = event.fields || {}, job = f.BERTH_JOB;
  if (!f.BERTH_RUN) return event.message;
  let text = (job || "") + (f.BERTH_POOLS ? " " + f.BERTH_POOLS : "");
  if (f.BERTH_RESULT) text += ", " + f.BERTH_RESULT;
  if (f.BERTH_RUN_MS) text += " after " + duration(Number(f.BERTH_RUN_MS));
  else if (f.BERTH_WAIT_MS) text += " after " + duration(Number(f.BERTH_WAIT_MS));
  return text;
}
function drawEvents() {
  set($("of-host"), state.overview && state.overview.host ? "of " + state.overview.host : "");
  rows($("event-list"), [...state.events].reverse(), (event) => event.at, (event) => {
    const li = make("li"), f = event.fields || {};
    li.append(make("time", "", event.time ? clock(Date.parse(event.time), true) : ""), make("b", "", event.event), make("span", "", eventText(event)));
    if ((f.BERTH_RESULT && f.BERTH_RESULT !== "success") || /lost|fenced|died/.test(event.event)) li.children[1].className = "bad";
    li.title = event.message || "";
    return li;
  }, () => {});
}

/* --- age of the data --- */

function drawAge() {
  if (document.hidden) return;
  const age = state.drawnAt ? Date.now() - state.drawnAt : Infinity, old = age > OLD_MS;
  document.body.classList.toggle("old", old && state.opened > 0);
  document.body.classList.toggle("held", state.hold);
  if (!state.drawnAt) set($("age"), "connecting");
  else if (state.hold) set($("age"), "held at " + clock(state.drawnAt + state.skew, true));
  else set($("age"), old ? "seen " + short(age) + " ago" : "live");
  let text = "";
  if (state.gone) text = "berthd does not answer: " + state.gone.why + ".";
  else if (old && !state.hold && state.opened > 0 && Date.now() - state.opened > OLD_MS) text = "No connection to berth-web.";
  else if (state.overview && state.overview.stale) text = "Redis is away: this page shows only what host " + state.overview.host + " knows without it.";
  if (text && state.drawnAt && old) text += " The data is " + short(age) + " old.";
  show($("banner"), text !== "");
  set($("banner"), text);
}

/* --- frames --- */

function drawAll() {
  if (!state.overview) return;
  drawSummary();
  drawPools();
  drawDetail();
  drawHosts();
}
function takeOverview(o) {
  state.skew = o.now_ms - Date.now();
  if (o.age_ms >= 0) state.drawnAt = Date.now() - o.age_ms;
  state.gone = null;
  if (o.whole) {
    state.pools.clear();
    state.hosts.clear();
    state.overview = o;
  } else Object.assign(state.overview || (state.overview = {}), { ...o, whole: true });
  for (const pool of o.pools) state.pools.set(pool.name, pool);
  for (const name of o.pools_gone) state.pools.delete(name);
  for (const host of o.hosts) state.hosts.set(host.session, host);
  for (const session of o.hosts_gone) state.hosts.delete(session);
  if (o.whole) {
    chooseFirst();
    fetchUser();
  }
  drawUser();
}
function takeEvents(data) {
  if (data.whole) state.events = [];
  const known = new Set(state.events.map((event) => event.at));
  for (const event of data.events) {
    if (known.has(event.at)) continue;
    state.events.push(event);
    const f = event.fields || {};
    if (f.BERTH_RUN && f.BERTH_RESULT && f.BERTH_RESULT !== "success") noteResult(f.BERTH_RUN, f.BERTH_RESULT);
  }
  if (data.missed) state.events.push({ at: "gap" + Date.now(), event: "gap", time: new Date(now()).toISOString(),
    message: data.missed < 0 ? "some events are missing" : plural(data.missed, "event") + " missing" });
  state.events = state.events.slice(-EVENTS_MAX);
}
function listen(name, take) {
  state.source.addEventListener(name, (message) => {
    if (state.hold && (name !== "pool" || state.detail)) return; /* held: only the first state of a pool that is chosen meanwhile */
    state.opened = state.opened || Date.now();
    take(JSON.parse(message.data));
  });
}
function open() {
  close();
  state.source = new EventSource("api/1/stream" + (state.pool ? "?pool=" + encodeURIComponent(state.pool) : ""));
  state.opened = state.opened || Date.now();
  listen("overview", (o) => {
    takeOverview(o);
    drawAll();
    drawAge();
  });
  listen("pool", (d) => {
    state.detail = d;
    if (d.name === state.pool && !d.unknown && !state.overview.stale) sampleHour(d);
    drawDetail();
    drawHour();
  });
  listen("event", (data) => {
    takeEvents(data);
    drawEvents();
  });
  listen("gone", (gone) => {
    state.gone = gone;
    if (gone.age_ms >= 0) state.drawnAt = Date.now() - gone.age_ms;
    drawAge();
  });
}
function close() {
  if (state.source) state.source.close();
  state.source = null;
}
/* Opens the stream after a pause of this page. The pause explains the age of the data, so it counts as no outage. */
function resume() {
  state.opened = 0;
  open();
}
/* A browser does not connect again after an error, for example one of a proxy whose server is away. */
function reopen() {
  if (!document.hidden && (!state.source || state.source.readyState === EventSource.CLOSED)) open();
}

/* --- which pool --- */

function chosen() {
  const match = /^#pool=(.+)$/.exec(location.hash);
  try {
    return match ? decodeURIComponent(match[1]) : null;
  } catch (error) {
    return null;
  }
}
/* Without a choice the pool with the longest queue is shown, until the page is opened again. */
function chooseFirst() {
  if (state.pool || state.pools.size === 0) return;
  let best = null;
  for (const pool of sorted(state.pools)) if (!best || pool.waiting > best.waiting || (pool.waiting === best.waiting && pool.used > best.used)) best = pool;
  choose(best.name);
}
function choose(pool) {
  if (pool === state.pool) return;
  state.pool = pool;
  state.detail = null;
  state.bars = new Map();
  $("chart").replaceChildren();
  open();
  fetchHour();
}
function onHash() {
  const pool = chosen();
  document.body.classList.toggle("picked", pool !== null);
  if (pool !== null) choose(pool);
  drawAll();
  if (pool !== null && matchMedia("(max-width: 720px)").matches) window.scrollTo(0, 0);
  drawHour();
}

/* --- actions --- */

let logged = false;
function drawUser() {
  show($("user"), Boolean(state.overview.actions && state.overview.login));
  set($("user"), logged ? "Log out" : "Log in");
}
function setLogged(value) {
  logged = value;
  drawUser();
}
/* Asks who is logged in: a login outlives a reload of the page, and ends elsewhere, too. */
async function fetchUser() {
  if (!state.overview.actions || !state.overview.login) return;
  try {
    const answer = await fetch("api/1/user", { cache: "no-store" });
    if (answer.ok) setLogged(Boolean((await answer.json()).user));
  } catch (error) { /* the banner says that there is no connection */ }
}
async function post(path, body) {
  const answer = await fetch("api/1/" + path, {
    method: "POST", headers: { "Content-Type": "application/json", "X-Berth": "1" }, body: JSON.stringify(body),
  }).catch(() => { throw new Error("No connection to berth-web: nothing is known of this action."); });
  const text = await answer.text();
  let data = null;
  try { data = JSON.parse(text); } catch (error) { data = { error: text.trim() }; }
  if (answer.status === 401) setLogged(false);
  if (!answer.ok) throw new Error(data.error || "the server answered " + answer.status);
  return data;
}
/* Asks before an action; No has the focus. fields: the inputs to show. */
function ask(title, text, fields, yes, run) {
  const dialog = $("dialog");
  $("d-title").textContent = title;
  $("d-text").textContent = text;
  $("d-error").textContent = "";
  $("d-yes").textContent = yes;
  for (const name of ["value", "for", "reason", "token"]) {
    show($("d-" + name + "-label"), fields.includes(name));
    $("d-" + name).value = "";
  }
  $("d-yes").onclick = async () => {
    $("d-yes").disabled = true;
    try {
      await run({ value: $("d-value").value, forMs: $("d-for").value, reason: $("d-reason").value, token: $("d-token").value });
      dialog.close();
    } catch (error) {
      $("d-error").textContent = error.message;
    }
    $("d-yes").disabled = false;
  };
  $("d-no").onclick = () => dialog.close();
  dialog.showModal();
  (fields.includes("token") ? $("d-token") : $("d-no")).focus();
}
function act(method, parameters, input) {
  if (input.reason) parameters.reason = input.reason;
  if (input.forMs) parameters.for_ms = Number(input.forMs);
  return post("do", { method: "io.berth." + method, parameters });
}
function askPause() {
  const pool = state.pool, known = state.pools.get(pool);
  if (known && known.override)
    ask("End the override of " + pool + "?", "The configured limit is in force again.", [], "End it", (i) => act("ClearLimit", { pool }, i));
  else
    ask("Pause " + pool + "?", "No more permits are granted; running jobs go on.", ["for", "reason"], "Pause", (i) => act("Pause", { pool }, i));
}
function askLimit() {
  const pool = state.pool;
  ask("Limit of " + pool, "It replaces the configured limit until it ends.", ["value", "for", "reason"], "Set", (i) => {
    if (!/^[0-9]{1,6}$/.test(i.value)) throw new Error("the limit must be a number");
    return act("SetLimit", { pool, limit: Number(i.value) }, i);
  });
}
function askRevoke(c) {
  ask("Revoke " + c.host + ":" + c.name + "?", "Run " + c.claim + " is stopped, and its permits are free again.", ["reason"], "Revoke",
    (i) => act("Revoke", { claim: c.claim }, i));
}
function askMove(c) {
  ask("Move " + c.host + ":" + c.name + " to the front?", "Run " + c.claim + " will be the next in each of its queues.", ["reason"], "Move",
    (i) => act("Move", { claim: c.claim, kind: "first" }, i));
}
function askUser() {
  if (logged) ask("Log out?", "The next action needs the token again.", [], "Log out", async () => {
    await post("logout", {});
    setLogged(false);
  });
  else ask("Log in", "The token of this page (berth-web(8), ACTIONS).", ["token"], "Log in", async (i) => {
    await post("login", { token: i.token });
    setLogged(true);
  });
}

/* --- begin --- */

function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  const word = theme === "dark" ? "Dark" : theme === "light" ? "Light" : "Auto";
  set($("theme"), word);
  $("theme").setAttribute("aria-label", word + " colours");
}
function nextTheme() {
  const themes = ["", "dark", "light"], theme = themes[(themes.indexOf(document.documentElement.dataset.theme || "") + 1) % 3];
  try { localStorage.setItem("berth-theme", theme); } catch (error) { /* the theme lasts until the page is closed */ }
  setTheme(theme);
}
function begin() {
  try { setTheme(localStorage.getItem("berth-theme") || ""); } catch (error) { setTheme(""); }
  $("theme").onclick = nextTheme;
  $("hold").onclick = () => {
    state.hold = !state.hold;
    $("hold").setAttribute("aria-pressed", String(state.hold));
    if (!state.hold) resume();
    drawAge();
  };
  $("act-pause").onclick = askPause;
  $("act-limit").onclick = askLimit;
  $("user").onclick = askUser;
  $("w-close").onclick = () => $("why").close();
  addEventListener("hashchange", onHash);
  addEventListener("resize", drawHour);
  document.addEventListener("visibilitychange", () => document.hidden ? close() : resume());
  state.pool = chosen();
  document.body.classList.toggle("picked", state.pool !== null);
  open();
  fetchHour();
  setInterval(() => {
    if (state.hold) return;
    drawAge();
    if (!document.hidden && Date.now() - state.barsAt > REFETCH_MS) fetchHour();
  }, 1000);
  setInterval(reopen, 2000);
}
begin();
