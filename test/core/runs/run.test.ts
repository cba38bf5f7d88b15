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
import { type Attempted, settlementOf } from '../../../src/core/runs/attempts/settlement.ts';
import { DELIVERIES, type Delivery } from '../../../src/core/schedules/schedule.ts';

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
    const ids = [
      plannedRunId(UID, noon),
      plannedRunId(UID, noon + 1),
      plannedRunId(UID.replace('3f', '4f'), noon),
    ];
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

describe('the settlement of an outcome', () => {
  const run: Attempted = {
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
  const settle = (outcome: Outcome, failures = 1, given: Partial<Attempted> = {}) =>
    settlementOf(outcome, { ...run, ...given, failures }, noon, 0.5);

  it('of a message is by the clock, however many tries that takes', () => {
    const retry = { maxAttempts: 1000, minBackoffSeconds: 10, maxBackoffSeconds: 900 };
    const busy: Outcome = {
      ...{ kind: 'transient', statusCode: 503, body: null, retryAfterSeconds: null },
      ...{ error: { kind: 'http', message: 'the target answered 503' }, senderStopped: false },
    };
    const after = (giveUpAt: number) => settle(busy, 500, { retry, giveUpAt }).status;
    expect(after(noon + 900_000)).toBe('pending');
    expect(after(noon + 899_999)).toBe('failed');
  });
  const error = { kind: 'timeout' as const, message: 'm' };
  const transient = {
    kind: 'transient' as const,
    error,
    statusCode: 503,
    body: 'b',
    retryAfterSeconds: null,
    senderStopped: false,
  };

  it('ends the run on a 2xx and clears its error', () => {
    const accepted = { kind: 'accepted' as const, statusCode: 200, body: 'ok', executionId: 'x' };
    expect(settle(accepted)).toMatchObject({
      status: 'succeeded',
      failures: 1,
      error: null,
      executionId: 'x',
      retryAt: null,
    });
  });
  it('fails the run on a permanent answer, without counting a failure', () => {
    expect(settle({ kind: 'rejected', statusCode: 404, body: '' })).toMatchObject({
      status: 'failed',
      failures: 1,
      error: { kind: 'http', statusCode: 404 },
    });
  });
  it('fails the run if the address of its target is blocked, without counting a failure', () => {
    const blocked = { kind: 'blocked' as const, error: { kind: 'blocked' as const, message: 'm' } };
    for (const delivery of ['atLeastOnce', 'atMostOnce'] as const) {
      expect(settle(blocked, 1, { delivery })).toMatchObject({
        status: 'failed',
        failures: 1,
        retryAt: null,
        error: { kind: 'blocked' },
      });
    }
  });
  it('tries again after a transient and after an unknown one, until the failures are used up', () => {
    expect(settle(transient)).toMatchObject({ status: 'pending', failures: 2, retryAt: noon + 20_000 });
    expect(settle({ kind: 'unknown', error, senderStopped: false })).toMatchObject({
      status: 'pending',
      failures: 2,
    });
    expect(settle(transient, 2)).toMatchObject({ status: 'failed', failures: 3, retryAt: null });
  });
  it('counts no failure if the sender itself stopped', () => {
    for (const stopped of [
      { ...transient, senderStopped: true },
      { kind: 'unknown' as const, error, senderStopped: true },
    ]) {
      expect(settle(stopped, 2)).toMatchObject({ status: 'pending', failures: 2, retryAt: null });
    }
  });

  describe('at most once', () => {
    const once = (outcome: Outcome, given: Partial<Attempted> = {}, failures = 0) =>
      settle(outcome, failures, { delivery: 'atMostOnce', ...given });
    const answered = (statusCode: number): Outcome => ({ ...transient, statusCode });
    const unknown: Outcome = { kind: 'unknown', error, senderStopped: false };

    it('is tried again if the target did not take it, or it provably was not sent', () => {
      for (const outcome of [
        answered(425),
        answered(429),
        answered(503),
        { ...transient, statusCode: null },
      ]) {
        expect(once(outcome)).toMatchObject({ status: 'pending', failures: 1, retryAt: noon + 10_000 });
      }
      expect(once(answered(503), {}, 2)).toMatchObject({ status: 'failed', failures: 3 });
    });
    it('stays unknown if a gateway cannot know, or no answer came, for whatever reason', () => {
      for (const outcome of [answered(408), answered(502), answered(504), unknown]) {
        expect(once(outcome)).toMatchObject({ status: 'unknown', retryAt: null });
      }
      expect(once({ kind: 'unknown', error, senderStopped: true })).toMatchObject({ status: 'unknown' });
    });
    it('fails on any other 5xx, since its receiver has had it', () => {
      for (const statusCode of [500, 501, 505, 507]) {
        expect(once(answered(statusCode))).toMatchObject({ status: 'failed', statusCode });
      }
    });
    it('asks a target with a lookup at once, and knows when nothing of the attempt can still arrive', () => {
      expect(once(unknown, { hasLookup: true })).toMatchObject({
        status: 'pending',
        retryAt: noon,
        doubt: { inDoubtUntil: noon + 29_000, lookups: 0 },
      });
    });
  });

  it('of an unknown outcome asks a target with a lookup before the run is tried again or given up', () => {
    const unknown: Outcome = { kind: 'unknown', error, senderStopped: false };
    expect(settle(unknown, 0, { hasLookup: true })).toMatchObject({
      status: 'pending',
      failures: 1,
      retryAt: noon + 10_000,
      doubt: { lookups: 0 },
    });
    expect(settle(unknown, 2, { hasLookup: true })).toMatchObject({
      status: 'pending',
      failures: 3,
      retryAt: noon,
      doubt: { lookups: 0 },
    });
  });
});

describe('a target that was asked about an attempt in doubt', () => {
  const run = {
    failures: 1,
    retry: { maxAttempts: 3, minBackoffSeconds: 10, maxBackoffSeconds: 60 },
    completion: 'response' as const,
    completionTimeoutSeconds: 3600,
    hasLookup: true,
    startedAt: noon,
    timeoutSeconds: 30,
    giveUpAt: null,
    wasHandedOff: false,
  };
  const unclear = { kind: 'unclear' as const, error: { kind: 'timeout' as const, message: 'm' } };
  const asking = { maxLookups: 3, askedAt: noon, now: noon, random: 0.5 };
  const ask = (answer: NoArrival, delivery: Delivery, lookups = 0, failures = 1, inDoubtUntil = noon) =>
    afterLookup(answer, { ...run, failures, delivery, doubt: { inDoubtUntil, lookups } }, asking);

  it('and does not have it gets another attempt, if one is left', () => {
    for (const delivery of DELIVERIES) {
      expect(ask({ kind: 'notArrived' }, delivery)).toBe('send');
      expect(ask({ kind: 'notArrived' }, delivery, 0, 3)).toMatchObject({ status: 'failed', failures: 3 });
    }
  });
  it('and does not say is asked again, at most as often as allowed', () => {
    for (const delivery of DELIVERIES) {
      expect(ask(unclear, delivery, 1)).toMatchObject({
        status: 'pending',
        failures: 1,
        retryAt: noon + 20_000,
        doubt: { lookups: 2 },
      });
    }
  });
  it('and never says gets another attempt under at least once, and none under at most once', () => {
    expect(ask(unclear, 'atLeastOnce', 2)).toBe('send');
    expect(ask(unclear, 'atMostOnce', 2)).toMatchObject({ status: 'unknown', doubt: null });
  });

  describe('before nothing of the attempt can still arrive', () => {
    const inDoubtUntil = noon + 60_000;
    const early = (answer: NoArrival, lookups = 0, failures = 1) =>
      ask(answer, 'atMostOnce', lookups, failures, inDoubtUntil);

    it('and does not have it is asked again then, and the early question does not count', () => {
      for (const failures of [1, 3]) {
        expect(early({ kind: 'notArrived' }, 2, failures)).toMatchObject({
          status: 'pending',
          failures,
          retryAt: inDoubtUntil,
          doubt: { inDoubtUntil, lookups: 2 },
        });
      }
    });
    it('and does not say is asked again as usual, and the last time not before then', () => {
      expect(early(unclear)).toMatchObject({
        status: 'pending',
        retryAt: noon + 10_000,
        doubt: { inDoubtUntil, lookups: 1 },
      });
      expect(early(unclear, 2)).toMatchObject({
        status: 'pending',
        retryAt: inDoubtUntil,
        doubt: { inDoubtUntil, lookups: 2 },
      });
    });
    it('is believed by the time of the question, not of the answer', () => {
      const late = { ...asking, now: inDoubtUntil + 1 };
      const runInDoubt = {
        ...run,
        delivery: 'atMostOnce' as const,
        doubt: { inDoubtUntil, lookups: 0 },
      };
      expect(afterLookup({ kind: 'notArrived' }, runInDoubt, late)).toMatchObject({
        status: 'pending',
        retryAt: inDoubtUntil + 1,
      });
      expect(afterLookup({ kind: 'notArrived' }, runInDoubt, { ...late, askedAt: inDoubtUntil })).toBe(
        'send',
      );
    });
  });
});

describe('a target that had acknowledged an attempt, and no longer has it when it is asked,', () => {
  const run = {
    failures: 1,
    retry: { maxAttempts: 3, minBackoffSeconds: 10, maxBackoffSeconds: 60 },
    completion: 'callback' as const,
    completionTimeoutSeconds: 3600,
    hasLookup: true,
    startedAt: noon,
    timeoutSeconds: 30,
    giveUpAt: null,
    wasHandedOff: true,
    doubt: { inDoubtUntil: noon, lookups: 0 },
  };
  it('gets it again under at least once, and never under at most once', () => {
    const ask = (delivery: Delivery) =>
      afterLookup(
        { kind: 'notArrived' },
        { ...run, delivery },
        { maxLookups: 3, askedAt: noon, now: noon, random: 0.5 },
      );
    expect(ask('atLeastOnce')).toBe('send');
    expect(ask('atMostOnce')).toMatchObject({ status: 'unknown', error: { kind: 'expired' } });
  });
  it('or has it and never says more, is asked no more often than attempts are allowed', () => {
    const accepted = { kind: 'accepted', statusCode: 200, body: '', executionId: null } as const;
    const after = (failures: number, delivery: Delivery, reported?: 'running') =>
      settlementOf({ ...accepted, ...(reported && { reported }) }, { ...run, failures, delivery }, noon, 0.5)
        .status;
    expect([after(2, 'atLeastOnce'), after(3, 'atLeastOnce', 'running')]).toEqual(['running', 'running']);
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
    expect(logOf({ ...pulled, attemptLog: [entry] })).toMatchObject([
      entry,
      { attempt: 2, outcome: 'accepted' },
    ]);
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
