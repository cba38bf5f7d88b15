import { describe, expect, it } from 'vitest';
import type { AttemptEntry, AttemptOutcome } from '../../../../src/core/runs/attempts/outcome.ts';
import { type RunStatus, isEnd } from '../../../../src/core/runs/run.ts';
import type { RunRecord } from '../../../../src/core/runs/run-record.ts';
import {
  type AttemptSettlement,
  type Settled,
  settleAttempt,
} from '../../../../src/core/runs/attempts/settle-attempt.ts';
import { type Settlement, ended } from '../../../../src/core/runs/attempts/settlement.ts';
import { ME, NOW, OTHER, attemptEntry, changesOf, runRecord } from '../../../support/run-record.ts';

const STARTED = NOW - 4_000;
const FINISHED = NOW - 100;
const ERROR = { kind: 'network', message: 'm' } as const;

/** What became of ME's attempt 2. */
function attempted(
  outcome: AttemptOutcome,
  status: Settlement['status'],
  {
    settlement,
    ...given
  }: Partial<Omit<AttemptSettlement, 'settlement'>> & {
    settlement?: Partial<Settlement>;
  } = {},
): AttemptSettlement {
  return {
    runId: '',
    instanceId: ME,
    attempt: 2,
    outcome,
    startedAt: STARTED,
    finishedAt: FINISHED,
    latenessMs: null,
    recovery: false,
    lookup: null,
    sent: true,
    settlement: { ...ended(status, 1, null), ...settlement },
    ...given,
  };
}

const settle = (run: RunRecord, outcome: AttemptSettlement): Settled => settleAttempt(run, outcome, NOW);

/*
 * Which outcomes may be written. A group: the run is claimed by ME for attempt 2, as the outcome is · by another instance · by none ·
 * by ME for attempt 3. In each: a 2xx that ends the run · a 2xx that begins it · a rejection · a transient one, tried again · an
 * unknown one. A letter: S is settled so; F is fenced; E is fenced as well, but the run had been ended otherwise, and nothing is wrong.
 */
const GUARD: [run: string, retriedAfter: number | null, letters: string][] = [
  ['waiting', null, 'FFFFF FFFFF FFFFF FFFFF'],
  ['pending', null, 'SSSSS SSFFF SSFFF SSFFF'],
  ['pending', 1, 'SSSSS SSFFF SSFFF SSFFF'],
  ['pending', 2, 'SFSSS SFFFF SFFFF SFFFF'],
  ['running', null, 'FFFFF FFFFF FFFFF FFFFF'],
  ['succeeded', null, 'EEEEE FFFFF FFFFF FFFFF'],
  ['failed', null, 'EEEEE FFFFF FFFFF FFFFF'],
  ['unknown', null, 'FFFFF FFFFF FFFFF FFFFF'],
  ['skipped missed', null, 'FFFFF FFFFF FFFFF FFFFF'],
  ['abandoned age', null, 'FFFFF FFFFF FFFFF FFFFF'],
  ['abandoned deleted', null, 'EEEEE EEEEE EEEEE EEEEE'],
  ['cancelled request', null, 'EEEEE EEEEE EEEEE EEEEE'],
  ['cancelled replaced', null, 'EEEEE EEEEE EEEEE EEEEE'],
];

describe('a run with a limit', () => {
  const limited = { limitId: 'l', admittedAt: STARTED };

  it('gives up its place between two attempts, and keeps it while its completion is awaited', () => {
    const placeAfter = (outcome: AttemptOutcome, status: Settlement['status']) => {
      const settled = settle(runRecord(limited), attempted(outcome, status));
      return [settled.kind, settled.run.admittedAt];
    };
    expect(placeAfter('transient', 'pending')).toEqual(['settled', null]);
    expect(placeAfter('unknown', 'pending')).toEqual(['settled', null]);
    expect(placeAfter('accepted', 'running')).toEqual(['settled', STARTED]);
  });

  it('that has given up its place is ended by a late 2xx, and not started by one', () => {
    const unclaimed = { claimedBy: null, claimedAt: null };
    const without = runRecord({ ...limited, ...unclaimed, admittedAt: null });
    expect(settle(without, attempted('accepted', 'succeeded')).kind).toBe('settled');
    expect(settle(without, attempted('accepted', 'running'))).toMatchObject({
      kind: 'fenced',
      run: { status: 'pending', attemptLog: [{ attempt: 2, outcome: 'acceptedLate' }] },
    });
    expect(settle(runRecord({ ...limited, ...unclaimed }), attempted('accepted', 'running')).kind).toBe('settled');
  });
});

const CLAIMS: Partial<RunRecord>[] = [
  { claimedBy: ME, attempts: 2 },
  { claimedBy: OTHER, attempts: 2 },
  { claimedBy: null, attempts: 2 },
  { claimedBy: ME, attempts: 3 },
];
const OUTCOMES = [
  attempted('accepted', 'succeeded'),
  attempted('accepted', 'running', { settlement: { leaseSeconds: 60 } }),
  attempted('rejected', 'failed'),
  attempted('transient', 'pending', { settlement: { failures: 2 } }),
  attempted('unknown', 'unknown'),
];

function letterOf(settled: Settled): string {
  if (settled.kind === 'fenced') return settled.alreadyEnded ? 'E' : 'F';
  return settled.kind === 'settled' ? 'S' : 'B';
}

describe('the outcome of an attempt', () => {
  it.each(GUARD)('of a run that is %s, opened again after attempt %s: %s', (state, retriedAfter, letters) => {
    const [status, reason = null] = state.split(' ') as [RunStatus, string?];
    const ended = isEnd(status) ? { finishedAt: NOW - 1, reason } : {};
    const found = CLAIMS.map((claim) =>
      OUTCOMES.map((outcome) =>
        letterOf(settle(runRecord({ status, retriedAfter, ...ended, ...claim }), outcome)),
      ).join(''),
    );
    expect(found.join(' ')).toBe(letters);
  });
});

describe('a settled run', () => {
  /** What is all else than its log, of a run that ME has claimed for attempt 2. */
  const changed = (outcome: AttemptSettlement, given: Partial<RunRecord> = {}) => {
    const before = runRecord(given);
    const settled = settle(before, outcome);
    expect(settled.kind).toBe('settled');
    const changes = changesOf(before, settled.run);
    delete changes.attemptLog;
    return changes;
  };

  it('succeeds with the answer of its target', () => {
    const answer = { executionId: 'x', statusCode: 204, body: 'ok' };
    expect(changed(attempted('accepted', 'succeeded', { settlement: answer }), { error: ERROR, lookups: 2 })).toEqual({
      status: 'succeeded',
      handoffStartedAt: STARTED,
      handedOffAt: FINISHED,
      finishedAt: FINISHED,
      lookups: 0,
      executionId: 'x',
      resultStatusCode: 204,
      resultBody: 'ok',
      error: null,
      updatedAt: NOW,
    });
  });

  it('runs until its lease, counted from now, has run out', () => {
    expect(changed(attempted('accepted', 'running', { settlement: { leaseSeconds: 60 } }))).toEqual({
      status: 'running',
      handoffStartedAt: STARTED,
      handedOffAt: FINISHED,
      leaseSeconds: 60,
      expiresAt: NOW + 60_000,
      updatedAt: NOW,
    });
  });

  it('fails, and counts as handed off by no attempt', () => {
    const settlement = { failures: 3, statusCode: 404, body: '', error: ERROR };
    expect(changed(attempted('rejected', 'failed', { settlement }), { handedOffAt: NOW - 9 })).toEqual({
      status: 'failed',
      failures: 3,
      handoffStartedAt: STARTED,
      handedOffAt: null,
      finishedAt: FINISHED,
      resultStatusCode: 404,
      resultBody: '',
      error: ERROR,
      updatedAt: NOW,
    });
  });

  it('is due again for its next attempt, and has no claim', () => {
    const settlement = { failures: 2, retryAt: NOW + 9_000, error: ERROR };
    expect(changed(attempted('transient', 'pending', { settlement }), { handoffStartedAt: STARTED })).toEqual({
      failures: 2,
      dueAt: NOW + 9_000,
      claimedBy: null,
      claimedAt: null,
      handoffStartedAt: null,
      error: ERROR,
      updatedAt: NOW,
    });
    // Unsent, as its sender stopped: due as it was.
    expect(changed(attempted('transient', 'pending'))).toEqual({
      claimedBy: null,
      claimedAt: null,
      updatedAt: NOW,
    });
  });

  it('waits for a lookup about an attempt in doubt, and keeps its acknowledgement', () => {
    const doubt = { inDoubtUntil: NOW + 5_000, lookups: 1 };
    const outcome = attempted('unknown', 'pending', { settlement: { retryAt: NOW + 5_000, doubt } });
    expect(changed(outcome, { handedOffAt: NOW - 9_000 })).toEqual({
      dueAt: NOW + 5_000,
      claimedBy: null,
      claimedAt: null,
      inDoubtUntil: NOW + 5_000,
      lookups: 1,
      attemptInDoubt: 2,
      updatedAt: NOW,
    });
  });

  it('is certain again once it has ended, or is to be sent again', () => {
    const doubt = { inDoubtUntil: NOW, lookups: 2, attemptInDoubt: 1, handedOffAt: NOW - 9_000 };
    const certain = { inDoubtUntil: null, lookups: 0, attemptInDoubt: null, handedOffAt: null };
    expect(changed(attempted('unknown', 'unknown'), doubt)).toMatchObject(certain);
    expect(changed(attempted('rejected', 'failed'), doubt)).toMatchObject(certain);
    expect(changed(attempted('transient', 'pending'), doubt)).toMatchObject(certain);
  });

  it('never counts fewer failures than it had, and keeps the lateness of its first attempt', () => {
    expect(changed(attempted('unknown', 'unknown'), { failures: 7 })).not.toHaveProperty('failures');
    const late = attempted('unknown', 'unknown', { latenessMs: 5 });
    expect(changed(late)).not.toHaveProperty('latenessMs');
    expect(changed(late, { latenessMs: null })).toMatchObject({ latenessMs: 5 });
  });

  it('names the instance whose 2xx it was, whichever has claimed it since', () => {
    const later = { claimedBy: OTHER, attempts: 3, claimedAt: NOW - 50 };
    expect(changed(attempted('accepted', 'succeeded'), later)).toMatchObject({
      status: 'succeeded',
      claimedBy: ME,
    });
  });
});

describe('the attempt that a target reports on', () => {
  /** Of a run whose attempt 1 was in doubt when it was claimed for attempt 2, or 3. */
  const spokenOf = (outcome: AttemptSettlement, given: Partial<RunRecord> = {}) =>
    settle(runRecord({ attemptInDoubt: 1, inDoubtUntil: NOW, ...given }), outcome).run.attemptInDoubt;
  const doubt = { inDoubtUntil: NOW, lookups: 1 };

  it('is the one that was in doubt, until another one is sent', () => {
    const asked = (sent: boolean) => attempted('unknown', 'pending', { settlement: { doubt }, sent });
    expect(spokenOf(asked(false))).toBe(1);
    expect(spokenOf(asked(true))).toBe(2);
    expect(spokenOf(asked(false), { attemptInDoubt: null })).toBe(2);
  });

  it('is the one that it reported as arrived', () => {
    const arrived = (status: 'running' | 'succeeded') =>
      attempted('accepted', status, { lookup: 'arrived', sent: false });
    expect(spokenOf(arrived('running'))).toBe(1);
    expect(spokenOf(arrived('succeeded'))).toBe(1);
    expect(spokenOf(arrived('running'), { attemptInDoubt: null })).toBe(2);
  });

  it('is an older one whose 2xx comes after a newer claim', () => {
    expect(spokenOf(attempted('accepted', 'running'), { attempts: 3 })).toBe(2);
    expect(spokenOf(attempted('accepted', 'succeeded'), { attempts: 3 })).toBeNull();
  });

  it('was not sent this time: no handoff began', () => {
    const { run } = settle(
      runRecord({ handoffStartedAt: STARTED }),
      attempted('accepted', 'succeeded', { lookup: 'arrived', sent: false }),
    );
    expect(run).toMatchObject({ handoffStartedAt: null, handedOffAt: FINISHED });
  });
});

describe('the log of attempts', () => {
  const entry = (given: Partial<AttemptEntry> = {}) =>
    attemptEntry({ startedAt: STARTED, finishedAt: FINISHED, outcome: 'accepted', ...given });
  const logOf = (outcome: AttemptSettlement, given: Partial<RunRecord> = {}) =>
    settle(runRecord(given), outcome).run.attemptLog;
  const accepted = attempted('accepted', 'succeeded');

  it('has no entry for a plain first success: the run shows all of it', () => {
    const first = attempted('accepted', 'succeeded', { attempt: 1 });
    expect(logOf(first, { attempts: 1 })).toBeNull();
    const logged = entry({ attempt: 1 });
    expect(logOf(first, { attempts: 1, lostAt: NOW - 1 })).toEqual([logged]);
    expect(logOf(first, { attempts: 2 })).toEqual([logged]);
    expect(logOf(accepted)).toEqual([entry()]);
  });

  it('has everything else that is known about an attempt', () => {
    const settlement = { failures: 2, statusCode: 503, error: ERROR };
    const said = { settlement, recovery: true, lookup: 'notArrived' } as const;
    expect(logOf(attempted('transient', 'pending', { attempt: 1, ...said }), { attempts: 1 })).toEqual([
      entry({
        attempt: 1,
        outcome: 'transient',
        statusCode: 503,
        error: ERROR,
        recovery: true,
        lookup: 'notArrived',
      }),
    ]);
  });

  it('calls a 2xx that settles the run accepted, and late only if the run has ended otherwise or goes on', () => {
    expect(logOf(accepted, { attempts: 3, claimedBy: OTHER })).toEqual([entry()]);
    const late = [entry({ outcome: 'acceptedLate' })];
    expect(logOf(accepted, { status: 'failed', finishedAt: NOW - 1 })).toEqual(late);
    expect(logOf(attempted('accepted', 'running'), { retriedAfter: 2 })).toEqual(late);
  });

  it('gets a better entry than recovery’s for an attempt, and only for its outcome', () => {
    const unsure = entry({
      startedAt: NOW - 5_000,
      finishedAt: NOW - 3_000,
      outcome: 'unknown',
      error: ERROR,
    });
    const known = { ...unsure, finishedAt: FINISHED, statusCode: 200, error: null };
    const said = { settlement: { statusCode: 200 }, lookup: 'unclear' } as const;
    const open = { attempts: 3, attemptLog: [unsure] };
    expect(logOf(attempted('accepted', 'succeeded', said), open)).toEqual([{ ...known, outcome: 'accepted' }]);
    expect(logOf(attempted('rejected', 'failed', said), open)).toEqual([{ ...known, outcome: 'rejected' }]);
    const ended = { ...open, status: 'unknown', finishedAt: NOW - 1 } as const;
    expect(logOf(attempted('accepted', 'succeeded', said), ended)).toEqual([{ ...known, outcome: 'acceptedLate' }]);
    // One unknown outcome says no more than another.
    expect(logOf(attempted('unknown', 'pending', said), open)).toEqual([unsure]);
  });

  it('keeps what is known, in the order of attempts', () => {
    const rejected = entry({ outcome: 'rejected' });
    expect(logOf(accepted, { attempts: 3, attemptLog: [rejected] })).toEqual([rejected]);
    const others = [entry({ attempt: 1 }), entry({ attempt: 3 })];
    expect(logOf(accepted, { attempts: 3, attemptLog: others })).toEqual([others[0], entry(), others[1]]);
  });

  it('is all that a fenced outcome changes', () => {
    const run = runRecord({ status: 'cancelled', reason: 'request', finishedAt: NOW - 1 });
    const settled = settle(run, attempted('transient', 'pending', { settlement: { error: ERROR } }));
    expect(settled).toMatchObject({ kind: 'fenced', alreadyEnded: true });
    expect(changesOf(run, settled.run)).toEqual({
      attemptLog: [entry({ outcome: 'transient', error: ERROR })],
    });
  });
});

describe('an outcome that an earlier statement has written', () => {
  /** The run as the outcome left it. */
  const written = (outcome: AttemptSettlement, given: Partial<RunRecord> = {}): RunRecord =>
    settle(runRecord(given), outcome).run;

  it('counts as settled, and changes nothing', () => {
    for (const outcome of OUTCOMES) {
      const run = written(outcome);
      expect(settle(run, outcome)).toEqual({ kind: 'settledBefore', run });
    }
  });

  it('is distinguished from that of another attempt', () => {
    const [ended, begun, , again] = OUTCOMES as [
      AttemptSettlement,
      AttemptSettlement,
      AttemptSettlement,
      AttemptSettlement,
    ];
    const elsewhere = { finishedAt: FINISHED + 1 };
    expect(settle(written(ended), { ...ended, ...elsewhere }).kind).toBe('fenced');
    expect(settle(written(ended), { ...ended, instanceId: OTHER }).kind).toBe('fenced');
    expect(settle(written(begun), { ...begun, ...elsewhere }).kind).toBe('fenced');
    expect(settle({ ...written(again), failures: 3 }, again).kind).toBe('fenced');
    expect(settle({ ...written(again), attempts: 3 }, again).kind).toBe('fenced');
    expect(settle({ ...written(again), attempts: 3, claimedBy: ME }, again).kind).toBe('fenced');
  });

  it('replaces what recovery wrote about it meanwhile', () => {
    // Taken over: it stands as a transient outcome that was not counted would leave it.
    const unsure = attemptEntry({ finishedAt: NOW - 1 });
    const run = runRecord({ claimedBy: null, claimedAt: null, lostAt: NOW - 1, attemptLog: [unsure] });
    const unsent = attempted('transient', 'pending', { settlement: { error: ERROR }, sent: false });
    expect(settle(run, unsent)).toEqual({
      kind: 'settledBefore',
      run: {
        ...run,
        attemptLog: [{ ...unsure, finishedAt: FINISHED, outcome: 'transient', error: ERROR }],
      },
    });
  });
});
