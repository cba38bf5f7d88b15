// @module-tag attack
import type { IncomingHttpHeaders } from 'node:http';
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { expect, onTestFinished, test, vi } from 'vitest';
import { type AccessDeps, createAccess } from '../../../src/api/access/access.ts';
import { createBrowserRules } from '../../../src/api/access/browser-rules.ts';
import { tokenWithHash } from '../../../src/api/access/known-callers.ts';
import { Problem } from '../../../src/api/http/problem.ts';
import { addressRanges } from '../../../src/config/address-ranges.ts';
import type { FirelockEvent } from '../../../src/core/events.ts';
import { logEvents } from '../../../src/observability/log/log-lines.ts';
import { createLogger } from '../../../src/observability/log/logger.ts';
import { createEventBus } from '../../../src/runtime/event-bus.ts';
import { newToken, settableClock } from './support.ts';
import { metricsOf } from '../../support/working.ts';
import { type CallPace, createCallsUnderWay } from '../../../src/api/access/call-limits.ts';

const ci = newToken('ci', 'operator');
const HOME = '192.0.2.1';

type Refused = Extract<FirelockEvent, { type: 'callRefused' }>['reason'];

/** What decides who calls, with requests that come from any address. */
function access(asking: Partial<AccessDeps> = {}) {
  const [clock, events, lines] = [settableClock(), createEventBus(), [] as string[]];
  logEvents(events, createLogger('debug', { write: (line: string) => void lines.push(line) }));
  const metrics = metricsOf(events, clock);
  const refusals: Refused[] = [];
  events.subscribe((event) => {
    if (event.type === 'callRefused') refusals.push(event.reason);
  });
  const standard = { apiTokens: [ci.known], trustedProxies: [], tokenRequestsPerSecond: 5 };
  const deps = { clock, events, ...standard, ...asking };
  const { identify } = createAccess(deps);
  const rules = createBrowserRules({ ...deps, host: '127.0.0.1', allowedHosts: { names: [], ranges: [] } });
  const from = (remoteAddress: string, headers: IncomingHttpHeaders = {}) => {
    try {
      return identify({ socket: { remoteAddress }, headers });
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      return { status: error.status, ...error.headers };
    }
  };
  return { from, rules, clock, lines, refusals, metrics };
}

const CI = { name: 'ci', role: 'operator', scope: null };
const UNAUTHORIZED = { status: 401, 'WWW-Authenticate': 'Bearer' };
const tooMany = (seconds: number) => ({ status: 429, 'Retry-After': String(seconds) });
const times = <T>(count: number, call: () => T): T[] => Array.from({ length: count }, call);

test('a hash is compared with that of every token, each in constant time, wherever it is found', () => {
  const compare = vi.spyOn(crypto, 'timingSafeEqual');
  syncBuiltinESMExports();
  onTestFinished(() => {
    compare.mockRestore();
    syncBuiltinESMExports();
  });
  const known = times(5, () => newToken('x', 'viewer').known);
  const stranger = newToken('x', 'viewer').known;
  for (const sought of [...known, stranger]) {
    compare.mockClear();
    expect(tokenWithHash(known, Buffer.from(sought.hash))).toBe(sought === stranger ? null : sought);
    expect(compare).toHaveBeenCalledTimes(5);
  }
});

test('without tokens and proxies the API asks no caller who it is, and every caller is an admin without a name', () => {
  const { from } = access({ apiTokens: [] });
  expect(from(HOME)).toEqual({ name: null, role: 'admin', scope: null });
  expect(from(HOME, { 'x-firelock-user': 'eve', 'x-firelock-role': 'viewer' })).toEqual({
    name: null,
    role: 'admin',
    scope: null,
  });
});

test('an address gets 401 for ten failures a minute, then 429; a valid token works all the while', () => {
  const { from, clock, refusals } = access();
  expect(times(10, () => from(HOME))).toEqual(times(10, () => UNAUTHORIZED));
  expect(from(HOME)).toEqual(tooMany(6));
  expect(from(HOME, { authorization: 'Bearer nonsense' })).toEqual(tooMany(6));
  expect(from(HOME, ci.headers)).toEqual(CI);
  expect(from('192.0.2.2')).toEqual(UNAUTHORIZED);
  clock.forward(4000);
  expect(from(HOME)).toEqual(tooMany(2));
  clock.forward(2000);
  expect(from(HOME)).toEqual(UNAUTHORIZED);
  expect(from(HOME)).toEqual(tooMany(6));
  expect(refusals.filter((reason) => reason === 'tooManyFailures')).toHaveLength(4);
});

test('an IPv6 network counts as one address, and an IPv4 one is the same on either kind of socket', () => {
  const { from } = access();
  times(5, () => from('2001:db8:0:1::1'));
  times(5, () => from('2001:db8::1:ffff:0:0:2'));
  expect(from('2001:db8:0:1:ffff::')).toEqual(tooMany(6));
  expect(from('2001:db8:0:2::1')).toEqual(UNAUTHORIZED);
  times(10, () => from(`::ffff:${HOME}`));
  expect(from(HOME)).toEqual(tooMany(6));
});

test('the API remembers a bounded number of addresses', () => {
  const { from } = access();
  times(11, () => from(HOME));
  for (let index = 0; index < 10_000; index += 1) from(`10.0.${index >> 8}.${index & 255}`);
  expect(from(HOME)).toEqual(UNAUTHORIZED);
});

test('a token may make a limited number of calls, twice as many at once, and does not delay other tokens', () => {
  const other = newToken('ci', 'viewer');
  const { from, clock, refusals } = access({ apiTokens: [ci.known, other.known] });
  expect(times(10, () => from(HOME, ci.headers))).toEqual(times(10, () => CI));
  expect(from('192.0.2.2', ci.headers)).toEqual(tooMany(1));
  expect(from(HOME, other.headers)).toEqual({ name: 'ci', role: 'viewer', scope: null });
  clock.forward(1000);
  expect(times(6, () => from(HOME, ci.headers))).toEqual([...times(5, () => CI), tooMany(1)]);
  expect(refusals).toEqual(['tooManyCalls', 'tooManyCalls']);
});

test('a trusted proxy names its user and the role; from any other address such headers mean nothing', () => {
  const trustedProxies = addressRanges(['10.1.0.0/16', '2001:db8::/32']);
  const { from, refusals } = access({ trustedProxies, tokenRequestsPerSecond: 1000 });
  const ann = { 'x-firelock-user': 'ann@example.com', 'x-firelock-role': 'viewer' };
  const named = { name: 'ann@example.com', role: 'viewer', scope: null };
  for (const proxy of ['10.1.2.3', '::ffff:10.1.2.3', '2001:db8::7']) expect(from(proxy, ann)).toEqual(named);
  const bounded = { ...ann, 'x-firelock-scope': 'billing.|ops.' };
  expect(from('10.1.2.3', bounded)).toEqual({ ...named, scope: ['billing.', 'ops.'] });
  // It passes on what its user has logged in with elsewhere.
  expect(from('10.1.2.3', { ...ann, authorization: 'Bearer of.something.else' })).toEqual(named);
  // A call through it that has a token, and no user.
  expect(from('10.1.2.3', ci.headers)).toEqual(CI);
  expect(from('10.1.2.3', { 'x-firelock-role': 'admin', ...ci.headers })).toEqual(CI);
  for (const stranger of ['10.2.0.1', '2001:db9::7', '127.0.0.1', '', 'fe80::1%eth0']) {
    expect(from(stranger, ann)).toEqual(UNAUTHORIZED);
    expect(from(stranger, { ...ann, ...ci.headers })).toEqual(CI);
  }
  expect(new Set(refusals)).toEqual(new Set(['missing']));
});

test('the API uses the headers of a proxy completely or not at all', () => {
  const { from, clock, refusals } = access({
    apiTokens: [],
    trustedProxies: addressRanges(['10.1.0.0/16']),
  });
  for (const headers of [
    { 'x-firelock-user': 'ann' },
    { 'x-firelock-user': 'ann', 'x-firelock-role': 'boss' },
    { 'x-firelock-user': 'ann', 'x-firelock-role': 'viewer, admin' },
    { 'x-firelock-user': 'ann, eve', 'x-firelock-role': 'admin' },
    { 'x-firelock-user': '', 'x-firelock-role': 'admin' },
    { 'x-firelock-user': 'firelock', 'x-firelock-role': 'admin' },
    { 'x-firelock-user': 'FIRELOCK', 'x-firelock-role': 'admin' },
    { 'x-firelock-user': 'Schedules-File', 'x-firelock-role': 'admin' },
    { 'x-firelock-user': 'ann', 'x-firelock-role': 'viewer, admin', ...ci.headers },
    { 'x-firelock-user': 'ann', 'x-firelock-role': 'viewer', 'x-firelock-scope': '' },
    { 'x-firelock-user': 'ann', 'x-firelock-role': 'viewer', 'x-firelock-scope': 'billing., ops.' },
  ]) {
    clock.forward(60_000);
    expect([headers, from('10.1.2.3', headers)]).toEqual([headers, UNAUTHORIZED]);
  }
  expect(new Set(refusals)).toEqual(new Set(['proxyHeaders']));
  expect(from('127.0.0.1')).toEqual(UNAUTHORIZED);
});

test('the log says why a token was refused and when a token was first used, and never the text that was sent', async () => {
  const short = newToken('short', 'viewer', Date.UTC(2030, 0, 1, 1));
  const { from, clock, lines, metrics } = access({ apiTokens: [ci.known, short.known] });
  const mistyped = ci.secret.slice(0, -1) + (ci.secret.endsWith('x') ? 'y' : 'x');
  const unknown = newToken('x', 'admin').secret;
  times(2, () => from(HOME, ci.headers));
  from(HOME);
  for (const sent of [mistyped, unknown, 'swordfish']) from(HOME, { authorization: `Bearer ${sent}` });
  clock.forward(24 * 3_600_000);
  from(HOME, ci.headers);
  from(HOME, short.headers);
  const log = lines.map((line) => JSON.parse(line) as { level: number; msg: string; token?: string });
  expect(log.map(({ level, msg }) => [level, msg])).toEqual([
    [30, expect.stringMatching(/^API tokens read/)],
    [30, expect.stringMatching(/^first use of this token/)],
    [20, 'call refused'],
    [40, expect.stringMatching(/mistyped or cut off/)],
    [40, expect.stringMatching(/its token is unknown/)],
    [40, expect.stringMatching(/not have the form of a token/)],
    [30, expect.stringMatching(/^first use of this token/)],
    [40, expect.stringMatching(/has expired/)],
  ]);
  const digits = ci.known.hash.toString('hex').slice(0, 8);
  expect(log[6]?.token).toBe(`ci (operator, ${digits}…, last used 2030-01-02T00:00:00.000Z)`);
  const all = lines.join('\n');
  for (const secret of [ci.secret, mistyped, unknown, 'swordfish', ci.known.hash.toString('hex')]) {
    expect(all).not.toContain(secret);
  }
  const text = await metrics.text();
  for (const reason of ['missing', 'mistyped', 'unknown', 'malformed', 'expired']) {
    expect(text).toContain(`firelock_calls_refused_total{reason="${reason}"} 1\n`);
  }
  expect(text).toContain('firelock_calls_refused_total{reason="role"} 0\n');
});

test('the log names what a page of another site has sent, ten times a minute for one address; the metric counts all', async () => {
  const { rules, clock, lines, metrics } = access({ apiTokens: [] });
  const host = 'e'.repeat(1000);
  const visit = (remoteAddress: string, headers: IncomingHttpHeaders, method = 'GET') =>
    rules({ method, url: '/', headers, socket: { remoteAddress } })?.status;
  expect(times(12, () => visit(HOME, { host }))).toEqual(times(12, () => 403));
  expect(visit('192.0.2.2', { host: 'localhost', via: '1.1 x' })).toBe(403);
  clock.forward(60_000);
  expect(visit(HOME, { host: 'localhost', origin: 'null' }, 'POST')).toBe(403);
  const log = lines.map((line) => JSON.parse(line) as { level: number; msg: string; sent?: string });
  const texts = { host: /FIRELOCK_ALLOWED_HOSTS/, via: /through a proxy/, origin: /another site/ };
  expect(log.map(({ level, msg, sent }) => [level, msg, sent])).toEqual([
    ...times(10, (): unknown[] => [40, expect.stringMatching(texts.host), `Host: ${'e'.repeat(194)}…`]),
    ...times(2, () => [20, 'call refused', undefined]),
    [40, expect.stringMatching(texts.via), 'via'],
    [40, expect.stringMatching(texts.origin), 'Origin: null'],
  ]);
  const text = await metrics.text();
  for (const [reason, count] of Object.entries({ foreignHost: 12, proxyMark: 1, otherSite: 1 }))
    expect(text).toContain(`firelock_calls_refused_total{reason="${reason}"} ${count}\n`);
});

test('calls of a caller are counted by their pace, slow ones with the usual, and an end makes room', () => {
  const calls = createCallsUnderWay({ usual: 2, prompt: 1, waits: 1 });
  const enter = (caller: string, pace: CallPace) => calls.enter(caller, pace);
  const leave = enter('eve', 'usual');
  expect(enter('eve', 'slow')).not.toBeNull();
  expect([enter('eve', 'usual'), enter('eve', 'slow')]).toEqual([null, null]);
  expect([enter('eve', 'prompt'), enter('eve', 'waits'), enter('bob', 'slow')]).not.toContain(null);
  expect([enter('eve', 'prompt'), enter('eve', 'waits')]).toEqual([null, null]);
  leave?.();
  expect(enter('eve', 'slow')).not.toBeNull();
  expect(enter('eve', 'slow')).toBeNull();
});
