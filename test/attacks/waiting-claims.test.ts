// @module-tag attack
import { describe, expect, test, vi } from 'vitest';
import { newToken, settableClock } from '../api/access/support.ts';
import { sharedApi } from '../api/api.ts';
import { until } from '../support/until.ts';
import { openConnection } from './raw-connection.ts';

const HOUR = 3_600_000;
const clock = settableClock();
const tokens = Array.from({ length: 5 }, (_, index) => newToken(`team-${index}`, 'worker'));
const expiring = newToken('expiring', 'worker', clock.now() + HOUR);
const api = sharedApi({
  clock,
  apiTokens: [...tokens, expiring].map(({ known }) => known),
  limits: { scarceFrom: 30, lookEveryMs: 10 },
});

/** A claim that waits, by itself on its connection. */
async function claim({ headers }: typeof expiring) {
  const claims = vi.spyOn(api.pullQueues, 'claim');
  const body = JSON.stringify({ workerId: 'w', waitSeconds: 60 });
  const before = claims.mock.calls.length;
  const connection = await openConnection(api.url, {
    beginning:
      `POST /api/v1/queues/idle/claim HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${headers.authorization}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  });
  await until(() => (claims.mock.calls.length > before ? true : null));
  return connection;
}

describe('claims that wait for work', () => {
  test('give way while connections are scarce: the longest waiting are answered with nothing, and none is cut off', async () => {
    const waiting: Awaited<ReturnType<typeof claim>>[] = [];
    for (let count = 0; count < 60; count += 1) waiting.push(await claim(tokens[count % 5] ?? expiring));
    const answered = () => waiting.filter(({ statuses }) => statuses().length > 0);
    await until(() => (answered().length >= 30 ? true : null));
    expect(answered()).toEqual(waiting.slice(0, answered().length));
    for (const { received, closed } of answered()) {
      expect(received()).toMatch(/^HTTP\/1\.1 200 OK\r\n(?:.+\r\n)*connection: close\r\n/i);
      expect(received()).toMatch(/\r\n\r\n\{"items":\[\]\}$/);
      await closed();
    }
    const others = waiting.slice(answered().length);
    expect(others.length).toBeGreaterThan(20);
    expect(others.every(({ socket }) => !socket.destroyed)).toBe(true);
    // A newcomer is served, whoever it is.
    const probe = await openConnection(api.url, {
      beginning: 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n',
    });
    await probe.answered();
    expect(probe.statuses()).toEqual([200]);
    for (const { socket } of waiting) socket.destroy();
    await until(async () => ((await api.connections()) < 10 ? true : null));
  });

  test('end with 401 when their token is revoked or expires, and those of others go on', async () => {
    const [one, two, three] = [tokens[0] ?? expiring, tokens[1] ?? expiring, tokens[2] ?? expiring];
    const [revoked, ended, changed, kept] = [
      await claim(one),
      await claim(expiring),
      await claim(two),
      await claim(three),
    ];
    api.access.replaceTokens([expiring.known, { ...two.known, scope: ['idle.'] }, three.known]);
    await revoked.answered();
    expect(revoked.received()).toMatch(/^HTTP\/1\.1 401 [^]*this call needs a valid token/);
    // What it may do now, it learns when it asks again.
    await changed.answered();
    expect(changed.received()).toMatch(/^HTTP\/1\.1 200 [^]*\{"items":\[\]\}$/);
    expect(ended.statuses()).toEqual([]);
    clock.forward(HOUR);
    await ended.answered();
    expect(ended.statuses()).toEqual([401]);
    expect([kept.statuses(), kept.socket.destroyed]).toEqual([[], false]);
  });
});
