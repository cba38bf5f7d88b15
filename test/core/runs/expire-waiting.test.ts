import { describe, expect, it } from 'vitest';
import { expireWaiting, hasExpired } from '../../../src/core/runs/expire-run.ts';
import { reopenRun } from '../../../src/core/runs/transitions.ts';
import { ME, NOW, changesOf, runRecord } from '../../support/run-record.ts';

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
