import { describe, expect, it } from 'vitest';
import { RUN_STATUSES } from '../../../src/core/runs/run.ts';
import { expireRun, expireWaiting, hasExpired, isStillSilent } from '../../../src/core/runs/expire-run.ts';
import type { RunRecord } from '../../../src/core/runs/run-record.ts';
import { type Settlement, ended } from '../../../src/core/runs/attempts/settlement.ts';
import { attemptEntry, changesOf, ME, NOW, runRecord } from '../../support/run-record.ts';
import { reopenRun } from '../../../src/core/runs/transitions.ts';

const ERROR = { kind: 'expired', message: 'no word came' } as const;
const running = (given: Partial<RunRecord> = {}) =>
  runRecord({
    status: 'running',
    expiresAt: NOW - 1,
    leaseSeconds: 60,
    handoffStartedAt: NOW - 70_000,
    handedOffAt: NOW - 69_000,
    resultStatusCode: 202,
    resultBody: 'taken',
    executionId: 'x',
    workerId: 'w',
    ...given,
  });
const settlement = (status: Settlement['status'], given: Partial<Settlement> = {}): Settlement => ({
  ...ended(status, 2, ERROR),
  ...given,
});

describe('a running run', () => {
  it('is silent once its lease has run out, in the attempt that was seen', () => {
    const silent = (given: Partial<RunRecord>, attempt = 2) => isStillSilent(running(given), attempt, NOW);
    expect(silent({ expiresAt: NOW - 1 })).toBe(true);
    expect(silent({ expiresAt: NOW })).toBe(true);
    expect(silent({ expiresAt: NOW + 1 })).toBe(false);
    expect(silent({ expiresAt: null })).toBe(false);
    expect(silent({}, 1)).toBe(false);
    expect(silent({}, 3)).toBe(false);
    expect(RUN_STATUSES.filter((status) => silent({ status }))).toEqual(['running']);
  });
});

describe('a silent run', () => {
  const changed = (expired: Settlement, given: Partial<RunRecord> = {}) => {
    const before = running(given);
    const changes = changesOf(before, expireRun(before, expired, NOW));
    delete changes.attemptLog;
    return changes;
  };

  it('that gets another attempt is due then, has no claim, and is not handed off', () => {
    expect(changed(settlement('pending', { retryAt: NOW + 9_000 }))).toEqual({
      status: 'pending',
      failures: 2,
      dueAt: NOW + 9_000,
      error: ERROR,
      expiresAt: null,
      claimedBy: null,
      claimedAt: null,
      handoffStartedAt: null,
      handedOffAt: null,
      updatedAt: NOW,
    });
  });

  it('whose target has a lookup stays handed off, and is in doubt', () => {
    const delivery = { inDoubtUntil: NOW, lookups: 0 };
    const doubt = {
      status: 'pending',
      failures: 2,
      error: ERROR,
      expiresAt: null,
      claimedBy: null,
      claimedAt: null,
      handoffStartedAt: null,
      inDoubtUntil: NOW,
      updatedAt: NOW,
    };
    expect(changed(settlement('pending', { doubt: delivery }))).toEqual({
      ...doubt,
      attemptInDoubt: 2,
    });
    // It already spoke of an older one.
    expect(changed(settlement('pending', { doubt: delivery }), { attemptInDoubt: 1 })).toEqual(doubt);
  });

  it('that has ended keeps its instance and its answer', () => {
    const over = { failures: 2, error: ERROR, expiresAt: null, finishedAt: NOW, updatedAt: NOW };
    for (const status of ['failed', 'unknown'] as const) {
      expect(changed(settlement(status))).toEqual({ status, ...over });
      const doubt = { inDoubtUntil: NOW - 1, attemptInDoubt: 1, lookups: 2 };
      const certain = { inDoubtUntil: null, attemptInDoubt: null, lookups: 0 };
      expect(changed(settlement(status), doubt)).toEqual({ status, ...over, ...certain });
    }
  });

  it('gives up its place if it gets another attempt', () => {
    const limited = running({ limitId: 'l', admittedAt: NOW - 70_000 });
    const again = expireRun(limited, settlement('pending', { retryAt: NOW + 9 }), NOW);
    expect(again.admittedAt).toBeNull();
  });

  it('has as many failures as the settlement says', () => {
    expect(changed(settlement('failed', { failures: 0 }), { failures: 4 })).toMatchObject({ failures: 0 });
  });
});

describe('the log of an attempt that expired', () => {
  const logOf = (given: Partial<RunRecord>) => expireRun(running(given), settlement('unknown'), NOW).attemptLog;
  const expired = attemptEntry({ startedAt: NOW - 70_000, statusCode: 202, error: ERROR });

  it('repeats what the run says about it', () => {
    expect(logOf({})).toEqual([expired]);
    expect(logOf({ recoveries: 1 })).toEqual([{ ...expired, recovery: true }]);
    const claimedAt = NOW - 80_000;
    expect(logOf({ handoffStartedAt: null, claimedAt })).toEqual([{ ...expired, startedAt: claimedAt }]);
    expect(logOf({ handoffStartedAt: null, claimedAt: null, claimedBy: null })).toEqual([
      { ...expired, startedAt: NOW, instanceId: '00000000-0000-0000-0000-000000000000' },
    ]);
  });

  it('says that it expired, whatever it said before, and keeps the rest', () => {
    const first = { ...expired, attempt: 1, outcome: 'transient' as const };
    const accepted = attemptEntry({
      ...{ startedAt: NOW - 99_000, finishedAt: NOW - 98_000, outcome: 'accepted', statusCode: 200 },
      ...{ recovery: true, lookup: 'arrived' },
    });
    expect(logOf({ attemptLog: [first, accepted] })).toEqual([
      first,
      { ...accepted, finishedAt: NOW, outcome: 'unknown', error: ERROR },
    ]);
  });
});

const FREE = { claimedBy: null, claimedAt: null } as const;
const UNBEGUN = { ...FREE, attempts: 0, failures: 0, firstClaimedAt: null, latenessMs: null } as const;
const ONCE = { atMostOnce: true };
const ASAP = { atMostOnce: false };

describe('whether a run has expired', () => {
  it('it has when it may have waited so long after it was due, and nobody has claimed it', () => {
    const run = runRecord({ ...UNBEGUN, dueAt: NOW - 60_000, expiresAfterSeconds: 60 });
    expect([hasExpired(run, NOW - 1), hasExpired(run, NOW)]).toEqual([false, true]);
    expect(hasExpired({ ...run, status: 'waiting' }, NOW)).toBe(true);
    expect(hasExpired({ ...run, claimedBy: ME }, NOW)).toBe(false);
    expect(hasExpired({ ...run, status: 'running' }, NOW)).toBe(false);
    expect(hasExpired(runRecord({ ...UNBEGUN, dueAt: 0 }), NOW)).toBe(false);
  });

  it('a run that is opened again has all of its time anew, as the schedule gives it now', () => {
    const ended = runRecord({ status: 'skipped', reason: 'expired', expiresAfterSeconds: 60 });
    const again = reopenRun(ended, null, { status: 'pending', now: NOW });
    expect(again.beginBy).toBe(NOW + 60_000);
  });
});

describe('the end of a run that has expired', () => {
  const expired = { expiresAfterSeconds: 60, beginBy: NOW - 1_000 };

  it('is skipped if it was never begun', () => {
    const run = runRecord({ ...UNBEGUN, ...expired });
    expect(changesOf(run, expireWaiting(run, ASAP, NOW))).toEqual({
      status: 'skipped',
      reason: 'expired',
      finishedAt: NOW,
      updatedAt: NOW,
    });
  });

  it('is failed between attempts, and says what came before', () => {
    const error = { kind: 'http', message: 'the target answered 503', statusCode: 503 } as const;
    const run = runRecord({ ...FREE, ...expired, error });
    expect(expireWaiting(run, ASAP, NOW)).toMatchObject({
      status: 'failed',
      reason: null,
      error: {
        kind: 'expired',
        message:
          'it expired at 2026-11-20T11:59:59.000Z as it waited to be tried again; before that: the target answered 503',
        statusCode: 503,
      },
    });
  });

  it('is failed for a run that had failed before it was opened again, and unknown if an attempt at most once is in doubt', () => {
    const ended = runRecord({ status: 'failed', ...expired });
    const again = reopenRun(ended, null, { status: 'pending', now: NOW });
    expect(expireWaiting(again, ASAP, NOW).status).toBe('failed');
    const inDoubt = runRecord({ ...FREE, ...expired, inDoubtUntil: NOW, attemptInDoubt: 1 });
    expect(expireWaiting(inDoubt, ONCE, NOW)).toMatchObject({ status: 'unknown', inDoubtUntil: null });
    expect(expireWaiting(inDoubt, ASAP, NOW).status).toBe('failed');
  });
});
