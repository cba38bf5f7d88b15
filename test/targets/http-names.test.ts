// @module-tag attack
import dns from 'node:dns';
import { isIP } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { parseEgressProxy } from '../../src/config/egress-proxy.ts';
import { createMachineNames, createResolver } from '../../src/runtime/names/resolver.ts';
import { startNameServer } from '../support/name-server.ts';
import { answerWith, attemptOf, httpTarget, never, receive } from './receivers.ts';
import { targetAt } from '../support/targets.ts';

afterEach(() => vi.restoreAllMocks());

/** Names that begin with `silent` are never answered; all others are this machine. */
async function names() {
  const { servers, questions } = await startNameServer(({ name }) =>
    name.startsWith('silent') ? null : { addresses: ['127.0.0.1'] },
  );
  const lookUp = createMachineNames({ servers, resolvConf: '/dev/null' });
  const asked = (beginning: string) =>
    new Set(questions.flatMap(({ name }) => (name.startsWith(beginning) ? [name] : []))).size;
  return { resolve: createResolver({ lookUp }), asked };
}

/** A server that listens at an address asks too, and is answered without a thread. */
const namesOf = (lookup: { mock: { calls: unknown[][] } }) =>
  lookup.mock.calls.map(([host]) => String(host)).filter((host) => isIP(host) === 0);

const SILENT = 40;

test('40 runs to names that are never answered delay no other name, and no thread of libuv waits for them', async () => {
  const inThread = [vi.spyOn(dns, 'lookup'), vi.spyOn(dns.promises, 'lookup')];
  const { url, arrivals } = await receive((_, response) => response.setHeader('connection', 'close').end());
  const { resolve, asked } = await names();
  const kind = httpTarget(4, { resolve });
  const daemon = new AbortController();
  let ended = 0;
  const silent = Array.from({ length: SILENT }, async (_, n) => {
    const attempt = attemptOf({ timeoutSeconds: 3600 });
    const outcome = await kind.deliver(targetAt(`http://silent-${n}.test/`), attempt, daemon.signal);
    ended += 1;
    return outcome;
  });
  await expect.poll(() => asked('silent')).toBe(SILENT);
  for (let n = 0; n < 4; n++) {
    const healthy = targetAt(`http://healthy-${n}.test:${new URL(url).port}/`);
    expect(await kind.deliver(healthy, attemptOf(), never)).toMatchObject({ kind: 'accepted' });
  }
  expect([ended, asked('healthy'), arrivals.length]).toEqual([0, 4, 4]);
  daemon.abort();
  for (const outcome of await Promise.all(silent)) expect(outcome).toMatchObject({ kind: 'transient' });
  expect(inThread.flatMap(namesOf)).toEqual([]);
});

test('all runs of one name share one look-up, which ends with the last of them', async () => {
  const asked: AbortSignal[] = [];
  const resolve = createResolver({
    lookUp: (_, signal) => {
      asked.push(signal);
      return new Promise((_answered, refuse) => signal.addEventListener('abort', () => refuse(new Error('ended'))));
    },
  });
  const kind = httpTarget(64, { resolve });
  const daemon = new AbortController();
  const runs = Array.from({ length: 64 }, (_, n) =>
    kind.deliver(targetAt(`http://silent.test:${8000 + (n % 4)}/`), attemptOf(), daemon.signal),
  );
  await expect.poll(() => asked.length).toBe(1);
  expect(asked[0]?.aborted).toBe(false);
  daemon.abort();
  expect((await Promise.all(runs)).map(({ kind: end }) => end)).toEqual(Array(64).fill('transient'));
  await expect.poll(() => asked[0]?.aborted).toBe(true);
  expect(asked).toHaveLength(1);
});

test('the egress proxy is found by the same resolver', async () => {
  const inThread = vi.spyOn(dns, 'lookup');
  const { resolve, asked } = await names();
  const refusing = await answerWith('HTTP/1.1 403 Forbidden\r\n\r\n');
  const proxy = parseEgressProxy(`http://proxy.test:${new URL(refusing).port}`);
  const kind = httpTarget(1, { resolve, proxy });
  expect(await kind.deliver(targetAt('http://target.test/'), attemptOf(), never)).toMatchObject({
    kind: 'blocked',
  });
  expect([asked('proxy'), asked('target')]).toEqual([1, 0]);
  expect(namesOf(inThread)).toEqual([]);
});
