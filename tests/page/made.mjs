// SPDX-License-Identifier: MIT
// Six made situations for the pictures of the page: what berth-web would send at AT. All times and names are fixed.

export const AT = Date.UTC(2026, 2, 14, 10, 12, 12);
const minutes = (n) => AT - n * 60000;
const time = (ms) => new Date(ms).toISOString();
let last = 0;
const id = () => (++last).toString(16).padStart(8, '0').repeat(4);

/* --- parts of the answers --- */

const pool = (name, limit, used = 0, more = {}) => ({ name, scope: 'cluster', limit, configured: limit, used, waiting: 0, limits_differ: false, oldest: null, ...more });
const host = (name, claims = 0, more = {}) => ({ host: name, session: name, version: '0.1.0', drained: false, claims, late_ms: 0, limits: [], ...more });
const event = (ago, name, job, pools, more = {}) => ({
  at: id(), time: time(minutes(ago)), event: name, message: job + ' ' + name,
  fields: { BERTH_EVENT: name, BERTH_JOB: job, BERTH_RUN: id(), BERTH_POOLS: pools, ...more },
});
const said = (ago, name, message) => ({ at: id(), time: time(minutes(ago)), event: name, message, fields: {} });
const holds = (on, name, permits, ago, usual) => ({ claim: id(), host: on, name, permits, since: time(minutes(ago)), ...(usual ? { usual: { n: 40, q_ms: usual.map((m) => m * 60000) } } : {}) });
const waits = (on, name, permits, ago, position) => ({ claim: id(), host: on, name, permits, position, since_ms: minutes(ago) });
const bar = (on, name, permits, waited, held, end, result = null) =>
  [id(), on, name, permits, waited === null ? null : minutes(waited), held === null ? null : minutes(held), end === null ? null : minutes(end), result];

const past = [
  bar('bee', 'reindex', 2, 60, 58, 44), bar('cow', 'report', 1, null, 57, 49), bar('ant', 'dump', 2, 55, 49, 40, 'exit-code'),
  bar('bee', 'backup', 2, 50, 44, 31), bar('cow', 'mail', 1, null, 38, 36), bar('ant', 'verify', 1, null, 39, 32),
];
const history = [
  event(31, 'released', 'backup', 'db:2', { BERTH_RESULT: 'success', BERTH_RUN_MS: '780000' }),
  event(9.5, 'granted', 'import', 'db:2', { BERTH_WAIT_MS: '15300' }),
  event(4.2, 'released', 'mail', 'net:1', { BERTH_RESULT: 'exit-code', BERTH_RUN_MS: '120400' }),
  said(2, 'limit-changed', 'the limit of pool net is 2'),
  event(0.1, 'queued', 'pg-dump', 'db:2'),
];
const hosts = () => [host('ant', 3), host('bee', 4), host('cow', 2)];
const quiet = () => [pool('db', 4, 0, { description: 'the primary of the shop; four jobs at once are enough' }), pool('heavy', 8, 0, { scope: 'host' }), pool('net', 2), pool('tenant/acme', 12)];
/* The bars of the hour: what has ended, and those of the detail. */
const hour = (detail) => ({
  schema: 1, pool: detail.name, now_ms: AT, from_ms: AT - 3600000, dropped: 0,
  bars: [...past, ...detail.holders.map((c) => [c.claim, c.host, c.name, c.permits, Date.parse(c.since) - 60000, Date.parse(c.since), null, null]),
    ...detail.queue.map((c) => [c.claim, c.host, c.name, c.permits, c.since_ms, null, null, null])],
});
const overview = (pools, more = {}) => ({
  schema: 1, whole: true, now_ms: AT, age_ms: 0, redis: { state: 'connected', grace_ms: 0, lease_ms: 20000, error: null, since: null },
  stale: false, recovering: false, pools, pools_gone: [], hosts: hosts(), hosts_gone: [], pools_more: 0, hosts_more: 0, hosts_n: 3, malformed: 0,
  host: 'ant', namespace: 'shop', version: '0.1.0', title: null, actions: false, login: false, ...more,
});
/* hash: how phones open the page. The first event on the list is the oldest. */
function situation(name, shown, detail, { events = history, gone = null, hash = '' } = {}) {
  const of = shown.pools.find((p) => p.name === detail.name);
  return { name, hash, overview: shown, detail: { limit: of.limit, used: of.used, waiting: of.waiting, ...detail }, events: { whole: true, missed: 0, events }, hour: hour(detail), gone };
}

/* --- the situations --- */

const holders = () => [holds('bee', 'backup', 2, 4.2, [3, 4, 5, 6, 8]), holds('ant', 'import', 2, 31, [9, 12, 15, 20, 26])];
const queue = () => [waits('bee', 'reindex', 3, 6.7, 1), waits('cow', 'dump', 2, 5, 2), waits('ant', 'pg-dump', 2, 3.2, 3)];
const oldest = { claim: id(), since_ms: minutes(6.7) };
const busy = () => [
  pool('db', 4, 4, { waiting: 3, oldest, description: quiet()[0].description }), pool('heavy', 8, 3, { scope: 'host' }),
  pool('net', 2, 1), pool('tenant/acme', 12, 11, { waiting: 2, oldest: { claim: id(), since_ms: minutes(0.4) } }), pool('wide', 400, 260),
];
const replace = (pools, name, more) => pools.map((p) => p.name === name ? { ...p, ...more } : p);

export const situations = [
  situation('idle', overview(quiet(), { hosts: hosts().map((h) => ({ ...h, claims: 0 })) }), { name: 'db', holders: [], queue: [] }),
  situation('busy', overview(busy()), { name: 'db', holders: holders(), queue: queue() }),
  situation('over-limit', overview(replace(busy(), 'db', { limit: 2, override: { limit: 2, until: time(minutes(-30)), reason: 'the primary is slow' } })),
    { name: 'db', holders: holders(), queue: [...queue().slice(1).map((w, i) => ({ ...w, position: i + 1 })), waits('bee', 'reindex', 3, 6.7, 0)] }, { hash: '#pool=db' }),
  situation('paused-and-differ', overview(replace(replace(busy(), 'db', { limit: 0, override: { limit: 0, until: null, reason: 'migration' } }), 'net', { limits_differ: true, lowest: { limit: 2, host: 'ant', session: 'ant' } }),
    { hosts: [host('ant', 3), host('bee', 4, { limits: [{ pool: 'net', limit: 3 }] }), host('cow', 2, { drained: true }), host('dog-of-another-rack.example.net', 1, { late_ms: 8000, version: '0.0.9' })], hosts_n: 4, hosts_more: 0 }),
  { name: 'db', holders: holders(), queue: queue().map((w) => ({ ...w, position: 0 })) }),
  situation('redis-away', overview(replace(replace(quiet(), 'db', { used: 2 }), 'heavy', { used: 1 }),
    { stale: true, hosts: [host('ant', 3)], hosts_n: 1, redis: { state: 'away', grace_ms: 0, lease_ms: 20000, error: '127.0.0.1:6379: Connection refused', since: time(minutes(0.05)) } }),
  { name: 'db', holders: [holds('ant', 'import', 2, 31)], queue: [] }, { events: [...history, said(0.05, 'redis-lost', 'Redis cannot be used: Server closed the connection')] }),
  situation('berthd-away', overview(busy(), { age_ms: 42000 }), { name: 'db', holders: holders(), queue: queue() },
    { gone: { why: 'Connection refused', since_ms: AT - 42000, now_ms: AT, age_ms: 42000 } }),
];
