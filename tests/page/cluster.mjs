// SPDX-License-Identifier: MIT
// A cluster for the page's tests: a private Redis, two hosts, berth-web. All of it ends with this program.
import { spawn, execFile } from 'node:child_process';
import { mkdtempSync, writeFileSync, rmSync, symlinkSync, existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const build = process.env.BUILD || 'build';
export const folder = mkdtempSync(join(tmpdir(), 'berth-page-'));
export const token = '0123456789abcdef0123456789abcdef';
const children = new Map();

export async function await_(what, test, ms = 20000) {
  const until = Date.now() + ms;
  for (;;) {
    if (await test().catch(() => false) !== false) return;
    if (Date.now() > until) throw new Error('it never came: ' + what);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
export function start(name, program, args, env = {}) {
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'ignore'], env: { ...process.env, ...env } });
  child.ended = new Promise((resolve) => child.on('exit', resolve));
  children.set(name, child);
  return child;
}
export async function end(name, signal = 'SIGTERM') {
  const child = children.get(name);
  children.delete(name);
  if (!child || child.exitCode !== null) return;
  child.kill(signal);
  await child.ended;
}
export async function endAll() {
  for (const name of [...children.keys()].filter((name) => name.startsWith('run'))) await end(name);
  for (const name of ['web', 'ant', 'bee', 'redis']) await end(name);
  for (const name of [...children.keys()]) await end(name, 'SIGKILL');
  rmSync(folder, { recursive: true, force: true });
}

export const berth = async (host, ...words) => (await run(join(build, 'berth'), ['--socket', join(folder, host, 'control.sock'), ...words])).stdout;
export const hold = (name, host, pools, label, seconds = '1000') => start('run-' + name, join(build, 'berth'),
  ['--socket', join(folder, host, 'control.sock'), 'run', ...pools.flatMap((pool) => ['-p', pool]), '--name', label, '--', 'sleep', seconds]);

export async function redisUp() {
  start('redis', join(folder, 'redis-server'), ['--port', '0', '--unixsocket', join(folder, 'redis.sock'), '--dir', folder, '--save', '', '--appendonly', 'no']);
  await await_('redis', async () => existsSync(join(folder, 'redis.sock')));
}
export async function hostUp(name) {
  start(name, join(build, 'berthd'), ['-c', join(folder, name + '.conf'), '--with-runner']);
  await await_(name, () => berth(name, 'version'));
}
export const port = 12000 + process.pid % 20000; // below those of clients
export const url = 'http://127.0.0.1:' + port + '/';
export async function webUp(...words) {
  start('web', join(build, 'berth-web'), ['--listen', '127.0.0.1:' + port, '--berth', join(folder, 'ant', 'control.sock'), ...words], { CREDENTIALS_DIRECTORY: folder });
  await await_('berth-web', async () => (await fetch(url + 'healthz')).ok);
}
export async function up() {
  const which = await run('sh', ['-c', 'command -v redis-server || command -v redis-check-rdb || command -v valkey-server']);
  symlinkSync(which.stdout.trim(), join(folder, 'redis-server'));
  writeFileSync(join(folder, 'web-token'), token + '\n');
  for (const [name, net] of [['ant', 2], ['bee', 3]])
    writeFileSync(join(folder, name + '.conf'), `host = "${name}"
runtime-directory = "${join(folder, name)}"
namespace = "page"
lease = "6s"
heartbeat = "1s"
redis { url = "unix://${join(folder, 'redis.sock')}" }
pool "db" { limit = 4
 description = "<img src=x onerror=document.title='broken'>" }
pool "net" { limit = ${net} }
pool "reports" { limit = 12 }
`, { mode: 0o644 });
  process.umask(0o022);
  await redisUp();
  await hostUp('ant');
  await hostUp('bee');
  await await_('the end of grace', () => berth('ant', 'grace', '--end'));
  await await_('a first grant', () => berth('bee', 'run', '-n', '-p', 'db', '--', 'true'));
}
