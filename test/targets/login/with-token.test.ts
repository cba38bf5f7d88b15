import { describe, expect, test } from 'vitest';
import type { Outcome } from '../../../src/core/runs/attempts/outcome.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { type OAuthTokens, AttemptTime, NoToken, withToken } from '../../../src/targets/login/oauth-tokens.ts';
import { never } from '../receivers.ts';
import { tokenClient } from './clients.ts';

const client = tokenClient();
const ACCEPTED: Outcome = { kind: 'accepted', statusCode: 200, body: '', executionId: null };
const REFUSED: Outcome = { kind: 'rejected', statusCode: 401, body: 'expired' };

describe('a request with a token', () => {
  test('is sent once if the target takes it', async () => {
    const { tokens, invalidated } = tokensOf('t-1');
    const { sent, send } = target(ACCEPTED);
    expect(await withToken({ tokens, client, time: time() }, send)).toBe(ACCEPTED);
    expect([sent, invalidated]).toEqual([['t-1'], []]);
  });

  test('is sent once more with another token if the target refuses the first', async () => {
    const { tokens, invalidated } = tokensOf('t-1', Promise.resolve('t-2'));
    const { sent, send } = target(REFUSED, ACCEPTED);
    expect(await withToken({ tokens, client, time: time() }, send)).toBe(ACCEPTED);
    expect([sent, invalidated]).toEqual([['t-1', 't-2'], ['t-1']]);
  });

  test('is sent once more also where the target calls a 401 transient', async () => {
    const { tokens } = tokensOf('t-1', 't-2');
    const { sent, send } = target(transient(401), ACCEPTED);
    expect(await withToken({ tokens, client, time: time() }, send)).toBe(ACCEPTED);
    expect(sent).toEqual(['t-1', 't-2']);
  });

  test('ends with a second 401', async () => {
    const { tokens, invalidated } = tokensOf('t-1', 't-2', 't-3');
    const second: Outcome = { ...REFUSED, body: 'second' };
    const { sent, send } = target(REFUSED, second, ACCEPTED);
    expect(await withToken({ tokens, client, time: time() }, send)).toBe(second);
    expect([sent, invalidated]).toEqual([['t-1', 't-2'], ['t-1']]);
  });

  test('is not repeated with the same token', async () => {
    const { tokens } = tokensOf('t-1', 't-1');
    const { sent, send } = target(REFUSED, ACCEPTED);
    expect(await withToken({ tokens, client, time: time() }, send)).toBe(REFUSED);
    expect(sent).toEqual(['t-1']);
  });

  test.each([
    { kind: 'accepted', statusCode: 401, body: '', executionId: null },
    { kind: 'rejected', statusCode: 403, body: '' },
    { kind: 'unknown', error: { kind: 'network', message: 'lost' }, senderStopped: false },
  ] satisfies Outcome[])('has the outcome that it has: $kind $statusCode', async (outcome) => {
    const { tokens, invalidated } = tokensOf('t-1', 't-2');
    const { sent, send } = target(outcome);
    expect(await withToken({ tokens, client, time: time() }, send)).toBe(outcome);
    expect([sent, invalidated]).toEqual([['t-1'], []]);
  });
});

describe('without a token nothing is sent', () => {
  test.each([
    ['fetched', () => Promise.reject(new NoToken('no access token: down'))],
    [
      'known',
      () => {
        throw new NoToken('no access token: down');
      },
    ],
  ])('if none can be %s', async (_, first) => {
    const { sent, send } = target();
    const outcome = await withToken({ ...tokensOf(first), client, time: time() }, send);
    expect(outcome).toEqual({
      ...transient(null),
      error: { kind: 'network', message: 'no access token: down' },
    });
    expect(sent).toEqual([]);
  });

  test('if it is not there in time', async () => {
    const { send } = target();
    const late = time({ timeoutSeconds: 0.01 });
    const outcome = await withToken({ ...tokensOf(NEVER), client, time: late }, send);
    const error = { kind: 'timeout', message: 'not sent: no access token within 0.01 s' };
    expect(outcome).toEqual({ ...transient(null), error });
  });

  test('if the daemon stops first', async () => {
    const stop = new AbortController();
    const { send } = target();
    const use = { ...tokensOf(NEVER), client, time: time({ signal: stop.signal }) };
    const waiting = withToken(use, send);
    stop.abort();
    const error = { kind: 'network', message: 'firelock stopped before the request was sent' };
    expect(await waiting).toEqual({ ...transient(null), error, senderStopped: true });
    expect(await withToken({ ...use, ...tokensOf(NEVER) }, send)).toMatchObject({ senderStopped: true });
  });
});

describe('after a 401, without another token, the run is tried again later', () => {
  test('if none can be had', async () => {
    const { tokens } = tokensOf('t-1', () => Promise.reject(new NoToken('no access token: down')));
    const { sent, send } = target(REFUSED, ACCEPTED);
    expect(await withToken({ tokens, client, time: time() }, send)).toEqual({
      ...transient(401),
      byRule: true,
      error: {
        kind: 'http',
        message: 'the target answered 401, and then: no access token: down',
        statusCode: 401,
      },
      body: 'expired',
    });
    expect(sent).toEqual(['t-1']);
  });

  test('if the time of the attempt ends, whatever part of it the first request took', async () => {
    let now = 0;
    const spent = new AttemptTime({ clock: { monotonic: () => now }, timeoutSeconds: 3600, signal: never });
    const { tokens } = tokensOf('t-1', NEVER);
    const send = () => {
      now += 3_600_000;
      return Promise.resolve(REFUSED);
    };
    const outcome = await withToken({ tokens, client, time: spent }, send);
    expect(outcome).toMatchObject({ kind: 'transient', statusCode: 401, senderStopped: false });
    expect(outcome).toHaveProperty('error.message', expect.stringContaining('no access token within 3600 s'));
  });

  test('and it does not count as a failure if the daemon stops', async () => {
    const stop = new AbortController();
    const { tokens } = tokensOf('t-1', NEVER);
    const send = () => {
      stop.abort();
      return Promise.resolve(REFUSED);
    };
    const use = { tokens, client, time: time({ signal: stop.signal }) };
    expect(await withToken(use, send)).toMatchObject({
      kind: 'transient',
      statusCode: 401,
      senderStopped: true,
    });
  });
});

test('who leaves takes nothing away from those who still wait', async () => {
  const fetching = Promise.withResolvers<string>();
  const { send } = target(ACCEPTED);
  const stop = new AbortController();
  const leaving = time({ signal: stop.signal });
  const left = withToken({ ...tokensOf(fetching.promise), client, time: leaving }, send);
  const stays = withToken({ ...tokensOf(fetching.promise), client, time: time() }, send);
  stop.abort();
  expect(await left).toMatchObject({ kind: 'transient' });
  fetching.resolve('t-1');
  expect(await stays).toBe(ACCEPTED);
});

const NEVER = new Promise<string>(() => undefined);

function time(rest: Partial<ConstructorParameters<typeof AttemptTime>[0]> = {}): AttemptTime {
  return new AttemptTime({ clock: systemClock, timeoutSeconds: 3600, signal: never, ...rest });
}

/** Has these in turn. */
function tokensOf(...inTurn: (string | Promise<string> | (() => Promise<string>))[]) {
  const invalidated: string[] = [];
  const tokens: Pick<OAuthTokens, 'get' | 'invalidate'> = {
    get: () => {
      const next = inTurn.shift() ?? NEVER;
      return typeof next === 'function' ? next() : next;
    },
    invalidate: (_, token) => void invalidated.push(token),
  };
  return { tokens, invalidated };
}

function target(...outcomes: Outcome[]) {
  const sent: string[] = [];
  const send = (token: string) => {
    sent.push(token);
    const outcome = outcomes.shift();
    return outcome === undefined ? Promise.reject(new Error('one more than expected')) : Promise.resolve(outcome);
  };
  return { sent, send };
}

function transient(statusCode: number | null): Outcome {
  const error = { kind: 'network', message: 'later' } as const;
  return { kind: 'transient', error, statusCode, body: null, retryAfterSeconds: null, senderStopped: false };
}
