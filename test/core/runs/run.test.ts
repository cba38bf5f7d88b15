import { describe, expect, it } from 'vitest';
import type { AttemptEntry, Outcome } from '../../../src/core/runs/attempts/outcome.ts';
import { type NoArrival, afterLookup } from '../../../src/core/runs/attempts/doubt.ts';
import {
  type Run,
  attemptLogOf,
  plannedRunId,
  plannedRunName,
  randomRunId,
  scheduledForOf,
} from '../../../src/core/runs/run.ts';
import {
  type Attempted,
  type Settlement,
  backoffMs,
  settlementOf,
} from '../../../src/core/runs/attempts/settlement.ts';
import { type Delivery, DELIVERIES } from '../../../src/core/schedules/schedule.ts';

const UID = '3f1b7c52-8a0e-4d7b-9c55-0e8a4f1d2b3c';
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const noon = Date.UTC(2026, 10, 20, 12);

describe('the id of a run', () => {
  it('of a planned fire is the same whenever and wherever it is computed', () => {
    // Written down once: a change of the rule would give every receiver's memory another key.
    expect(plannedRunId(UID, noon)).toBe(plannedRunId(UID, noon));
    expect(plannedRunId(UID, noon)).toMatch(UUID_V7);
    expect(plannedRunId(UID, noon)).toBe('01a1f8d3-ea00-71f2-b746-3a8d9561a9da');
  });
  it('differs with the schedule and with the fire', () => {
    const ids = [plannedRunId(UID, noon), plannedRunId(UID, noon + 1), plannedRunId(UID.replace('3f', '4f'), noon)];
    expect(new Set(ids).size).toBe(3);
  });
  it('contains its moment, from 2000 to 2100', () => {
    for (const at of [Date.UTC(2000, 0, 1), noon, noon + 999, Date.UTC(2099, 11, 31, 23, 59, 59, 999)]) {
      expect(scheduledForOf(plannedRunId(UID, at))).toBe(at);
      expect(scheduledForOf(randomRunId(at))).toBe(at);
    }
  });
  it('of any other run is random in the same layout', () => {
    expect(randomRunId(noon)).toMatch(UUID_V7);
    expect(randomRunId(noon)).not.toBe(randomRunId(noon));
  });
  it('has a name that is known before the launch', () => {
    expect(plannedRunName('pay', noon)).toBe('pay@2026-11-20T12:00:00.000Z');
  });
});

/** Once failed, of three attempts at most. */
const RUN: Attempted = {
  failures: 1,
  retry: { maxAttempts: 3, minBackoffSeconds: 10, maxBackoffSeconds: 60 },
  delivery: 'atLeastOnce',
  completion: 'response',
  completionTimeoutSeconds: 3600,
  hasLookup: false,
  startedAt: noon - 1000,
  timeoutSeconds: 30,
  giveUpAt: null,
  doubt: null,
  wasHandedOff: false,
};

const PENDING_TWICE_FAILED = { status: 'pending', failures: 2, retryAt: noon + 20_000 } as const;

describe('the settlement of an outcome', () => {
  const settle = (outcome: Outcome, failures = 1, given: Partial<Attempted> = {}) =>
    settlementOf(outcome, { ...RUN, ...given, failures }, noon, 0.5);
  const error = { kind: 'timeout', message: 'm' } as const;
  const answered = (statusCode: number | null): Outcome => ({
    ...{ kind: 'transient', error, statusCode, body: 'b', retryAfterSeconds: null, senderStopped: false },
  });
  const busy = answered(503);
  const unknown: Outcome = { kind: 'unknown', error, senderStopped: false };
  const blocked: Outcome = { kind: 'blocked', error: { kind: 'blocked', message: 'm' } };

  it('of a message is by the clock, however many tries that takes', () => {
    const retry = { maxAttempts: 1000, minBackoffSeconds: 10, maxBackoffSeconds: 900 };
    const after = (giveUpAt: number) => settle(busy, 500, { retry, giveUpAt }).status;
    expect([after(noon + 900_000), after(noon + 899_999)]).toEqual(['pending', 'failed']);
  });

  it.each<[string, Outcome, failures: number, expected: Partial<Settlement>]>([
    [
      'a 2xx ends the run and clears its error',
      { kind: 'accepted', statusCode: 200, body: 'ok', executionId: 'x' },
      1,
      { status: 'succeeded', failures: 1, error: null, executionId: 'x', retryAt: null },
    ],
    ['a transient one leads to another attempt', busy, 1, PENDING_TWICE_FAILED],
    ['an unknown one leads to another attempt', unknown, 1, PENDING_TWICE_FAILED],
    ['the failures are used up', busy, 2, { status: 'failed', failures: 3, retryAt: null }],
  ])('%s', (_, outcome, failures, expected) => {
    expect(settle(outcome, failures)).toMatchObject(expected);
  });

  it('fails the run on a permanent answer, or where the address is blocked, without counting a failure', () => {
    const failed = { status: 'failed', failures: 1, retryAt: null };
    expect(settle({ kind: 'rejected', statusCode: 404, body: '' })).toMatchObject({
      ...{ ...failed, error: { kind: 'http', statusCode: 404 } },
    });
    for (const delivery of DELIVERIES)
      expect(settle(blocked, 1, { delivery })).toMatchObject({ ...failed, error: { kind: 'blocked' } });
  });

  it('counts no failure if the sender itself stopped', () => {
    for (const stopped of [busy, unknown])
      expect(settle({ ...stopped, senderStopped: true } as Outcome, 2)).toMatchObject({
        ...{ status: 'pending', failures: 2, retryAt: null },
      });
  });

  describe('at most once', () => {
    const once = (outcome: Outcome, given: Partial<Attempted> = {}, failures = 0) =>
      settle(outcome, failures, { delivery: 'atMostOnce', ...given });

    it('is tried again if the target did not take it, or it provably was not sent', () => {
      for (const outcome of [425, 429, 503, null].map(answered))
        expect(once(outcome)).toMatchObject({ status: 'pending', failures: 1, retryAt: noon + 10_000 });
      expect(once(busy, {}, 2)).toMatchObject({ status: 'failed', failures: 3 });
    });
    it('stays unknown if a gateway cannot know, or no answer came, for whatever reason', () => {
      for (const outcome of [...[408, 502, 504].map(answered), unknown, { ...unknown, senderStopped: true }])
        expect(once(outcome)).toMatchObject({ status: 'unknown', retryAt: null });
    });
    it('fails on any other 5xx, since its receiver has had it', () => {
      for (const statusCode of [500, 501, 505, 507])
        expect(once(answered(statusCode))).toMatchObject({ status: 'failed', statusCode });
    });
    it('asks a target with a lookup at once, and knows when nothing of the attempt can still arrive', () => {
      const doubt = { inDoubtUntil: noon + 29_000, lookups: 0 };
      expect(once(unknown, { hasLookup: true })).toMatchObject({ status: 'pending', retryAt: noon, doubt });
    });
  });

  it('of an unknown outcome asks a target with a lookup before the run is tried again or given up', () => {
    const asked = (failures: number) => settle(unknown, failures, { hasLookup: true });
    const pending = { status: 'pending', doubt: { lookups: 0 } };
    expect(asked(0)).toMatchObject({ ...pending, failures: 1, retryAt: noon + 10_000 });
    expect(asked(2)).toMatchObject({ ...pending, failures: 3, retryAt: noon });
  });
});

describe('a target that was asked about an attempt in doubt', () => {
  const unclear = { kind: 'unclear', error: { kind: 'timeout', message: 'm' } } as const;
  const notArrived = { kind: 'notArrived' } as const;
  const asking = { maxLookups: 3, askedAt: noon, now: noon, random: 0.5 };
  const ask = (answer: NoArrival, delivery: Delivery, lookups = 0, failures = 1, inDoubtUntil = noon) =>
    afterLookup(answer, { ...RUN, failures, delivery, doubt: { inDoubtUntil, lookups } }, asking);

  it('and does not have it gets another attempt, if one is left', () => {
    for (const delivery of DELIVERIES) {
      expect(ask(notArrived, delivery)).toBe('send');
      expect(ask(notArrived, delivery, 0, 3)).toMatchObject({ status: 'failed', failures: 3 });
    }
  });
  it('and does not say is asked again, at most as often as allowed', () => {
    const again = { status: 'pending', failures: 1, retryAt: noon + 20_000, doubt: { lookups: 2 } };
    for (const delivery of DELIVERIES) expect(ask(unclear, delivery, 1)).toMatchObject(again);
  });
  it('and never says gets another attempt under at least once, and none under at most once', () => {
    expect(ask(unclear, 'atLeastOnce', 2)).toBe('send');
    expect(ask(unclear, 'atMostOnce', 2)).toMatchObject({ status: 'unknown', doubt: null });
  });

  describe('before nothing of the attempt can still arrive', () => {
    const inDoubtUntil = noon + 60_000;
    const early = (answer: NoArrival, lookups = 0, failures = 1) =>
      ask(answer, 'atMostOnce', lookups, failures, inDoubtUntil);
    const pending = (retryAt: number, lookups: number) => ({
      ...{ status: 'pending', retryAt, doubt: { inDoubtUntil, lookups } },
    });

    it('and does not have it is asked again then, and the early question does not count', () => {
      for (const failures of [1, 3])
        expect(early(notArrived, 2, failures)).toMatchObject({ ...pending(inDoubtUntil, 2), failures });
    });
    it('and does not say is asked again as usual, and the last time not before then', () => {
      expect(early(unclear)).toMatchObject(pending(noon + 10_000, 1));
      expect(early(unclear, 2)).toMatchObject(pending(inDoubtUntil, 2));
    });
    it('is believed by the time of the question, not of the answer', () => {
      const inDoubt = { ...RUN, delivery: 'atMostOnce', doubt: { inDoubtUntil, lookups: 0 } } as const;
      const askedAt = (moment: number) =>
        afterLookup(notArrived, inDoubt, { ...asking, askedAt: moment, now: inDoubtUntil + 1 });
      expect(askedAt(noon)).toMatchObject({ status: 'pending', retryAt: inDoubtUntil + 1 });
      expect(askedAt(inDoubtUntil)).toBe('send');
    });
  });
});

describe('a target that had acknowledged an attempt, and no longer has it when it is asked,', () => {
  const run = { ...RUN, completion: 'callback', wasHandedOff: true } as const;
  const doubt = { inDoubtUntil: noon, lookups: 0 };
  it('gets it again under at least once, and never under at most once', () => {
    const asking = { maxLookups: 3, askedAt: noon, now: noon, random: 0.5 };
    const ask = (delivery: Delivery) => afterLookup({ kind: 'notArrived' }, { ...run, doubt, delivery }, asking);
    expect(ask('atLeastOnce')).toBe('send');
    expect(ask('atMostOnce')).toMatchObject({ status: 'unknown', error: { kind: 'expired' } });
  });
  it('or has it and never says more, is asked no more often than attempts are allowed', () => {
    const accepted = { kind: 'accepted', statusCode: 200, body: '', executionId: null } as const;
    const after = (failures: number, delivery: Delivery, reported: { reported?: 'running' } = {}) =>
      settlementOf({ ...accepted, ...reported }, { ...run, doubt, failures, delivery }, noon, 0.5).status;
    expect([after(2, 'atLeastOnce'), after(3, 'atLeastOnce', { reported: 'running' })]).toEqual([
      ...['running', 'running'],
    ]);
    expect([after(3, 'atLeastOnce'), after(3, 'atMostOnce')]).toEqual(['failed', 'unknown']);
  });
});

describe('the attempt log', () => {
  const run = {
    attempts: 1,
    claimedBy: UID,
    handoffStartedAt: noon,
    handedOffAt: noon + 5,
    result: { statusCode: 204, body: '' },
    queue: null,
    attemptLog: [],
  } as unknown as Run;
  const logOf = (changed: Partial<Run> = {}) => attemptLogOf({ ...run, ...changed });
  it('for a worker that claimed it after another one comes from its run too', () => {
    const entry = { attempt: 1, outcome: 'unknown' } as AttemptEntry;
    const pulled = { attempts: 2, queue: 'q' };
    expect(logOf({ ...pulled, attemptLog: [entry] })).toMatchObject([entry, { attempt: 2, outcome: 'accepted' }]);
    const again = { ...entry, attempt: 2 };
    expect(logOf({ ...pulled, attemptLog: [entry, again] })).toEqual([entry, again]);
  });
  it('for a plain first-attempt success comes from its run', () => {
    expect(logOf()).toEqual([
      {
        attempt: 1,
        instanceId: UID,
        startedAt: noon,
        finishedAt: noon + 5,
        outcome: 'accepted',
        statusCode: 204,
        error: null,
        recovery: false,
        lookup: null,
      },
    ]);
  });
  it('is what was recorded otherwise', () => {
    expect(logOf({ handedOffAt: null })).toEqual([]);
    const entry = { ...logOf()[0], attempt: 2 } as AttemptEntry;
    expect(logOf({ attempts: 2, attemptLog: [entry] })).toEqual([entry]);
  });
});

describe('the wait before another attempt', () => {
  const policy = { maxAttempts: 10, minBackoffSeconds: 10, maxBackoffSeconds: 60 };
  it('doubles with each failure up to the cap, give or take a tenth', () => {
    expect([1, 2, 3, 4, 5].map((failures) => backoffMs(policy, failures, null, 0.5))).toEqual([
      10_000, 20_000, 40_000, 60_000, 60_000,
    ]);
    expect(backoffMs(policy, 1, null, 0)).toBe(9_000);
    expect(backoffMs(policy, 1, null, 0.999999)).toBe(11_000);
  });
  it('is lengthened by the target’s Retry-After up to the cap, never shortened', () => {
    expect(backoffMs(policy, 1, 30, 0.5)).toBe(30_000);
    expect(backoffMs(policy, 1, 3600, 0.5)).toBe(60_000);
    expect(backoffMs(policy, 3, 1, 0.5)).toBe(40_000);
  });
});
