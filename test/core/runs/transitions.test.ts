import { describe, expect, it } from 'vitest';
import type { AttemptEntry } from '../../../src/core/runs/attempts/outcome.ts';
import type { RunRecord } from '../../../src/core/runs/run-record.ts';
import {
  type ReportedEnd,
  endAsReported,
  endRun,
  releaseRun,
  reopenRun,
  withAttempt,
} from '../../../src/core/runs/transitions.ts';
import { NOW, OTHER, attemptEntry, changesOf, runRecord } from '../../support/run-record.ts';

const ERROR = { kind: 'http', message: 'the target answered 500', statusCode: 500 } as const;
const entry = (attempt: number, given: Partial<AttemptEntry> = {}) =>
  attemptEntry({
    attempt,
    finishedAt: NOW - 900,
    outcome: 'rejected',
    statusCode: 500,
    error: ERROR,
    ...given,
  });

describe('a run that ends without a further attempt', () => {
  it('says how and why, and keeps its past', () => {
    const run = runRecord({ status: 'running', expiresAt: NOW + 1, error: ERROR, attemptLog: [entry(1)] });
    const ended = { finishedAt: NOW, expiresAt: null, updatedAt: NOW };
    expect(changesOf(run, endRun(run, { status: 'cancelled', reason: 'request' }, NOW))).toEqual({
      status: 'cancelled',
      reason: 'request',
      ...ended,
    });
    const error = { kind: 'dependency', message: 'm' } as const;
    expect(changesOf(run, endRun(run, { status: 'failed', error }, NOW))).toEqual({
      status: 'failed',
      error,
      ...ended,
    });
  });
});

describe('a waiting run', () => {
  it('that waits no longer is pending, and due as it was', () => {
    const run = runRecord({ status: 'waiting', dueAt: NOW + 5 });
    expect(changesOf(run, releaseRun(run, NOW))).toEqual({ status: 'pending', updatedAt: NOW });
  });
});

describe('a run that is opened again', () => {
  const route = { lane: 'http https://other.example', priority: 1, limitId: 'warehouse' };
  const { scheduleUid, scheduleId } = runRecord();
  const guards = { overlapGuarded: true, outcomeWatched: true };
  const CURRENT = {
    scheduleUid,
    scheduleId,
    scheduleVersion: 7,
    ...route,
    ...guards,
    expiresAfterSeconds: 600,
  };
  const ended = runRecord({
    status: 'unknown',
    reason: 'age',
    attempts: 4,
    failures: 3,
    recoveries: 2,
    recoveredAt: NOW - 900,
    lostAt: NOW - 1_000,
    handoffStartedAt: NOW - 2_000,
    handedOffAt: NOW - 1_900,
    finishedAt: NOW - 800,
    inDoubtUntil: NOW - 700,
    attemptInDoubt: 3,
    lookups: 2,
    expiresAt: NOW - 600,
    leaseSeconds: 60,
    workerId: 'w',
    progress: 0.5,
    error: ERROR,
    resultStatusCode: 500,
    resultBody: 'b',
    executionId: 'x',
    coalesced: 2,
    openDependencies: 0,
    onDependencyFailure: 'run',
    hasDependents: true,
    ownPayload: '{}',
    key: 'k',
    overlapGuarded: true,
    attemptLog: [entry(1), entry(4)],
  });
  const FRESH = {
    dueAt: NOW,
    updatedAt: NOW,
    retriedAfter: 4,
    failures: 0,
    recoveries: 0,
    recoveredAt: null,
    claimedBy: null,
    claimedAt: null,
    firstClaimedAt: null,
    handoffStartedAt: null,
    handedOffAt: null,
    finishedAt: null,
    reason: null,
    inDoubtUntil: null,
    attemptInDoubt: null,
    lookups: 0,
    expiresAt: null,
    leaseSeconds: null,
    workerId: null,
    progress: null,
    error: null,
    resultStatusCode: null,
    resultBody: null,
    executionId: null,
  };

  it('gets the present definition of its schedule', () => {
    const again = reopenRun(ended, CURRENT, { status: 'pending', now: NOW });
    expect(changesOf(ended, again)).toEqual({
      ...FRESH,
      outcomeWatched: true,
      status: 'pending',
      scheduleVersion: 7,
      lane: 'http https://other.example',
      priority: 1,
      limitId: 'warehouse',
      expiresAfterSeconds: 600,
      beginBy: NOW + 600_000,
    });
    const free = { ...CURRENT, overlapGuarded: false };
    expect(reopenRun(ended, free, { status: 'pending', now: NOW }).overlapGuarded).toBe(false);
  });

  it('keeps its own if it has no schedule, and overlaps with none', () => {
    const again = reopenRun(ended, null, { status: 'waiting', now: NOW });
    expect(changesOf(ended, again)).toEqual({ ...FRESH, status: 'waiting', overlapGuarded: false });
  });

  it('keeps its past attempts: none of their numbers is used again', () => {
    const again = reopenRun(ended, CURRENT, { status: 'pending', now: NOW });
    expect(again).toMatchObject({ attempts: 4, lostAt: NOW - 1_000, attemptLog: [entry(1), entry(4)] });
  });
});

describe('a run whose end is reported', () => {
  const SUCCEEDED: ReportedEnd = { status: 'succeeded', error: null, result: null };
  const changed = (given: Partial<RunRecord>, end: ReportedEnd = SUCCEEDED) => {
    const run = runRecord(given);
    return changesOf(run, endAsReported(run, end, NOW));
  };
  const running = {
    status: 'running',
    handoffStartedAt: NOW - 5_000,
    handedOffAt: NOW - 4_000,
    expiresAt: NOW + 1,
    leaseSeconds: 60,
    resultStatusCode: 202,
    resultBody: 'taken',
  } as const;
  const ended = { finishedAt: NOW, expiresAt: null, updatedAt: NOW };

  it('while it runs keeps the answer of its target, unless a result is reported', () => {
    expect(changed(running)).toEqual({ status: 'succeeded', ...ended });
    expect(changed(running, { ...SUCCEEDED, result: '7' })).toEqual({
      status: 'succeeded',
      resultStatusCode: null,
      resultBody: '7',
      ...ended,
    });
    expect(changed(running, { status: 'failed', error: ERROR, result: null })).toEqual({
      status: 'failed',
      error: ERROR,
      ...ended,
    });
  });

  it('before the outcome of its attempt is written was handed off now, and began with its claim', () => {
    const claimed = { claimedAt: NOW - 5_000, resultStatusCode: 503, resultBody: 'b', error: ERROR };
    expect(changed({ ...claimed, latenessMs: null })).toEqual({
      status: 'succeeded',
      error: null,
      resultStatusCode: null,
      resultBody: null,
      finishedAt: NOW,
      handoffStartedAt: NOW - 5_000,
      handedOffAt: NOW,
      latenessMs: NOW - 5_000 - runRecord().dueAt,
      updatedAt: NOW,
    });
    expect(changed({ ...claimed, handoffStartedAt: NOW - 4_900 })).not.toHaveProperty('handoffStartedAt');
    expect(changed({ claimedAt: null, latenessMs: null })).not.toHaveProperty('latenessMs');
  });

  it('after it ended as unknown is certain', () => {
    const unknown = {
      ...running,
      status: 'unknown',
      reason: 'x',
      expiresAt: null,
      finishedAt: NOW - 9,
      inDoubtUntil: NOW,
      error: ERROR,
    } as const;
    expect(changed(unknown)).toEqual({
      status: 'succeeded',
      reason: null,
      error: null,
      resultStatusCode: null,
      resultBody: null,
      inDoubtUntil: null,
      finishedAt: NOW,
      updatedAt: NOW,
    });
  });

  it('has its full progress if it succeeded, and the last one if it failed', () => {
    const half = { ...running, progress: 0.5 };
    expect(changed(half)).toMatchObject({ progress: 1 });
    expect(changed(half, { status: 'failed', error: ERROR, result: null })).not.toHaveProperty('progress');
    expect(changed(running)).not.toHaveProperty('progress');
  });

  it('does not end before it was handed off, whatever the clocks say', () => {
    expect(changed({ ...running, handedOffAt: NOW + 40 })).toMatchObject({ finishedAt: NOW + 40 });
  });
});

describe('a log of attempts', () => {
  it('is in the order of attempts', () => {
    expect(withAttempt(null, entry(2))).toEqual([entry(2)]);
    expect(withAttempt([entry(1), entry(3)], entry(2))).toEqual([entry(1), entry(2), entry(3)]);
    expect(withAttempt([entry(9)], entry(10))).toEqual([entry(9), entry(10)]);
  });

  it('keeps the entry of an attempt, unless the new outcome is better known', () => {
    const log = [entry(1), entry(2)];
    const better = entry(2, { outcome: 'accepted', finishedAt: NOW, statusCode: 200, error: null });
    const entryOfOther = {
      ...better,
      instanceId: OTHER,
      startedAt: NOW,
      recovery: true,
      lookup: 'unclear',
    } as const;
    expect(withAttempt(log, entryOfOther)).toEqual(log);
    expect(withAttempt(log, entryOfOther, () => false)).toEqual(log);
    expect(withAttempt(log, entryOfOther, ({ outcome }) => outcome === 'rejected')).toEqual([entry(1), better]);
  });

  it('is a new one each time', () => {
    const log = [entry(1)];
    withAttempt(log, entry(2));
    withAttempt(log, entry(1, { outcome: 'accepted' }), () => true);
    expect(log).toEqual([entry(1)]);
  });
});
