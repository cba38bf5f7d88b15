import { describe, expect, it } from 'vitest';
import {
  type LostRunFacts,
  type LostVerdict,
  type RecoveryPolicy,
  judgeLostClaim,
  resumeRun,
  takeOverRun,
} from '../../../src/core/runs/lost-claim.ts';
import type { RunTrigger } from '../../../src/core/runs/run.ts';
import type { RunRecord } from '../../../src/core/runs/run-record.ts';
import { ME, NOW, OTHER, changesOf, runRecord, attemptEntry } from '../../support/run-record.ts';

const HOUR = 3_600_000;
const POLICY: RecoveryPolicy = { maxRecoveries: 3, maxRecoveryAgeSeconds: 86_400, lockTtlSeconds: 120 };
const FACTS: LostRunFacts = {
  atMostOnce: false,
  hasLookup: false,
  timeoutSeconds: 30,
  schedule: { enabled: true },
};
const LETTERS: Record<LostVerdict, string> = {
  again: 'A',
  unknown: 'U',
  deleted: 'G',
  disabled: 'D',
  recoveries: 'R',
  age: 'O',
};

/*
 * Every verdict there is. A row: the schedule (there, paused, gone), how often the run has been taken over, of three times at most,
 * how long its attempt has been due, and its triggers. A letter: A is driven on, U ends as unknown; abandoned since its schedule is G gone or
 * D disabled, since it was recovered too often (R) or is too old (O).
 *
 * A group: at least once; at least once with a lookup; at most once; at most once with a lookup. In each: nothing may have been sent ·
 * this attempt has begun · an earlier attempt is in doubt · both.
 */
const VERDICTS: [schedule: string, recoveries: number, due: string, triggers: string, verdicts: string][] = [
  ['there', 2, 'young', 'schedule catchUp backfill manual after api notify', 'AAAA AAAA AUUU AAAA'],
  ['there', 2, 'old', 'schedule catchUp backfill manual after api notify', 'OOOO OOOO OUUU OUUU'],
  ['there', 3, 'young', 'schedule catchUp backfill manual after api notify', 'RRRR RRRR RUUU RUUU'],
  ['there', 3, 'old', 'schedule catchUp backfill manual after api notify', 'RRRR RRRR RUUU RUUU'],
  ['paused', 2, 'young', 'schedule catchUp', 'DDDD DDDD DUUU DUUU'],
  ['paused', 2, 'young', 'backfill manual after api notify', 'AAAA AAAA AUUU AAAA'],
  ['paused', 2, 'old', 'schedule catchUp', 'DDDD DDDD DUUU DUUU'],
  ['paused', 2, 'old', 'backfill manual after api notify', 'OOOO OOOO OUUU OUUU'],
  ['paused', 3, 'young', 'schedule catchUp', 'DDDD DDDD DUUU DUUU'],
  ['paused', 3, 'young', 'backfill manual after api notify', 'RRRR RRRR RUUU RUUU'],
  ['paused', 3, 'old', 'schedule catchUp', 'DDDD DDDD DUUU DUUU'],
  ['paused', 3, 'old', 'backfill manual after api notify', 'RRRR RRRR RUUU RUUU'],
  ['gone', 2, 'young', 'schedule catchUp backfill manual after', 'GGGG GGGG GUUU GUUU'],
  ['gone', 2, 'young', 'api notify', 'AAAA AAAA AUUU AAAA'],
  ['gone', 2, 'old', 'schedule catchUp backfill manual after', 'GGGG GGGG GUUU GUUU'],
  ['gone', 2, 'old', 'api notify', 'OOOO OOOO OUUU OUUU'],
  ['gone', 3, 'young', 'schedule catchUp backfill manual after', 'GGGG GGGG GUUU GUUU'],
  ['gone', 3, 'young', 'api notify', 'RRRR RRRR RUUU RUUU'],
  ['gone', 3, 'old', 'schedule catchUp backfill manual after', 'GGGG GGGG GUUU GUUU'],
  ['gone', 3, 'old', 'api notify', 'RRRR RRRR RUUU RUUU'],
];

const DELIVERIES = [
  { atMostOnce: false, hasLookup: false },
  { atMostOnce: false, hasLookup: true },
  { atMostOnce: true, hasLookup: false },
  { atMostOnce: true, hasLookup: true },
];
const SENT = [
  { handoffStartedAt: null, inDoubtUntil: null },
  { handoffStartedAt: NOW - 4_000, inDoubtUntil: null },
  { handoffStartedAt: null, inDoubtUntil: NOW - 1_000 },
  { handoffStartedAt: NOW - 4_000, inDoubtUntil: NOW - 1_000 },
];

describe('the verdict on a lost claim', () => {
  it.each(VERDICTS)(
    'schedule %s, recovered %i times, due for %s, %s: %s',
    (schedule, recoveries, due, triggers, verdicts) => {
      const dueAt = due === 'young' ? NOW - HOUR : NOW - 25 * HOUR;
      const facts = { ...FACTS, schedule: schedule === 'gone' ? null : { enabled: schedule === 'there' } };
      for (const trigger of triggers.split(' ') as RunTrigger[]) {
        const letters = DELIVERIES.map((delivery) =>
          SENT.map((sent) => {
            const run = runRecord({ trigger, recoveries, dueAt, firstClaimedAt: NOW - 26 * HOUR, ...sent });
            return LETTERS[judgeLostClaim(run, { ...facts, ...delivery }, POLICY, NOW)];
          }).join(''),
        );
        expect({ trigger, verdicts: letters.join(' ') }).toEqual({ trigger, verdicts });
      }
    },
  );

  it('covers all triggers in all of these situations', () => {
    const rows = VERDICTS.flatMap(([schedule, recoveries, due, triggers]) =>
      triggers.split(' ').map((trigger) => `${schedule} ${recoveries} ${due} ${trigger}`),
    );
    expect(new Set(rows).size).toBe(rows.length);
    expect(rows).toHaveLength(3 * 2 * 2 * 7);
  });

  it('counts the age from the first attempt, however long the run had waited, or from when a later attempt was due', () => {
    const day = POLICY.maxRecoveryAgeSeconds * 1000;
    const verdict = (firstClaimedAt: number | null, dueAt: number, createdAt = NOW - 400 * day) =>
      judgeLostClaim(runRecord({ firstClaimedAt, dueAt, createdAt }), FACTS, POLICY, NOW);
    expect(verdict(NOW - day, NOW - 400 * day)).toBe('again');
    expect(verdict(NOW - day - 1, NOW - 400 * day)).toBe('age');
    // Its retries are a day apart.
    expect(verdict(NOW - 10 * day, NOW - HOUR)).toBe('again');
    expect(verdict(NOW - 10 * day, NOW - day - 1)).toBe('age');
    // A row that says nothing of a first attempt.
    expect(verdict(null, NOW - 2 * day)).toBe('age');
    expect(verdict(null, NOW - 2 * day, NOW - HOUR)).toBe('again');
  });

  it('gives up no message of a notifier within a day, however soon other runs are given up', () => {
    const verdict = (trigger: RunTrigger, maxAgeHours: number, hours: number) => {
      const run = runRecord({ trigger, dueAt: NOW - hours * HOUR, firstClaimedAt: NOW - hours * HOUR });
      const policy = { ...POLICY, maxRecoveryAgeSeconds: maxAgeHours * 3600 };
      return judgeLostClaim(run, { ...FACTS, schedule: null }, policy, NOW);
    };
    expect([verdict('api', 1, 2), verdict('notify', 1, 23), verdict('notify', 1, 25)]).toEqual([
      ...['age', 'again', 'age'],
    ]);
    expect(verdict('notify', 48, 47)).toBe('again');
  });
});

/** Attempt 3 was claimed; attempt 2 is the one in doubt, where one is; it was asked about once in vain. */
const lost = (given: Partial<RunRecord>) =>
  runRecord({ attempts: 3, lookups: 1, attemptInDoubt: given.inDoubtUntil ? 2 : null, ...given });

describe('a run that goes on', () => {
  const asked = NOW - 1_000;
  const begun = NOW - 4_000;
  /** The attempt's own time limit and that of a frozen instance, from its beginning. */
  const believedFrom = begun + 150_000;
  /** As in VERDICTS: delivery, lookup, what may have been sent; then what is in doubt from now on. */
  const AFTERWARDS: [
    atMostOnce: boolean,
    hasLookup: boolean,
    handoffStartedAt: number | null,
    inDoubtUntil: number | null,
    expected: Pick<RunRecord, 'inDoubtUntil' | 'attemptInDoubt' | 'lookups'>,
  ][] = [
    [false, false, null, null, { inDoubtUntil: null, attemptInDoubt: null, lookups: 0 }],
    [false, false, begun, null, { inDoubtUntil: null, attemptInDoubt: null, lookups: 0 }],
    [false, false, null, asked, { inDoubtUntil: null, attemptInDoubt: null, lookups: 0 }],
    [false, false, begun, asked, { inDoubtUntil: null, attemptInDoubt: null, lookups: 0 }],
    [false, true, null, null, { inDoubtUntil: NOW, attemptInDoubt: 3, lookups: 0 }],
    [false, true, begun, null, { inDoubtUntil: NOW, attemptInDoubt: 3, lookups: 0 }],
    [false, true, null, asked, { inDoubtUntil: asked, attemptInDoubt: 2, lookups: 0 }],
    [false, true, begun, asked, { inDoubtUntil: asked, attemptInDoubt: 3, lookups: 0 }],
    [true, false, null, null, { inDoubtUntil: null, attemptInDoubt: null, lookups: 1 }],
    [true, true, null, null, { inDoubtUntil: null, attemptInDoubt: null, lookups: 1 }],
    [true, true, begun, null, { inDoubtUntil: believedFrom, attemptInDoubt: 3, lookups: 0 }],
    [true, true, null, asked, { inDoubtUntil: asked, attemptInDoubt: 2, lookups: 1 }],
    [true, true, begun, asked, { inDoubtUntil: believedFrom, attemptInDoubt: 3, lookups: 0 }],
  ];

  it.each(AFTERWARDS)(
    'at most once: %s, lookup: %s, begun: %s, asked about from: %s',
    (atMostOnce, hasLookup, handoffStartedAt, inDoubtUntil, expected) => {
      const run = lost({ handoffStartedAt, inDoubtUntil, recoveries: 1 });
      const facts = { ...FACTS, atMostOnce, hasLookup };
      const after = takeOverRun(run, 'again', facts, POLICY, NOW);
      expect(after).toMatchObject({
        ...expected,
        status: 'pending',
        reason: null,
        finishedAt: null,
        recoveries: 2,
        claimedBy: null,
        claimedAt: null,
        handoffStartedAt: null,
        firstClaimedAt: run.firstClaimedAt,
        attempts: 3,
        failures: 1,
        lostAt: NOW,
        recoveredAt: NOW,
        updatedAt: NOW,
        // At once: what the target says of the attempt is asked for without delay, and its "no" believed only after inDoubtUntil.
        dueAt: run.dueAt,
      });
    },
  );

  it('keeps its place of its limit: it is under way, or about to be', () => {
    const limited = runRecord({ limitId: 'l', admittedAt: NOW - 5_000 });
    expect(takeOverRun(limited, 'again', FACTS, POLICY, NOW).admittedAt).toBe(NOW - 5_000);
  });

  it('keeps when it was first lost, and its last error', () => {
    const error = { kind: 'timeout', message: 'm' } as const;
    const run = lost({ lostAt: NOW - HOUR, error });
    expect(takeOverRun(run, 'again', FACTS, POLICY, NOW)).toMatchObject({ lostAt: NOW - HOUR, error });
  });

  it('is in doubt about the lost attempt if no earlier one is named', () => {
    const facts = { ...FACTS, hasLookup: true };
    const run = lost({ inDoubtUntil: asked, attemptInDoubt: null });
    expect(takeOverRun(run, 'again', facts, POLICY, NOW).attemptInDoubt).toBe(3);
  });
});

describe('a run that is given up', () => {
  const begun = NOW - 4_000;
  const run = lost({ handoffStartedAt: begun, inDoubtUntil: NOW - 1_000, latenessMs: null });

  it('is abandoned, and keeps the instance of its claim', () => {
    for (const verdict of ['deleted', 'disabled', 'recoveries', 'age'] as const) {
      const after = takeOverRun(run, verdict, FACTS, POLICY, NOW);
      expect(changesOf(run, after)).toEqual({
        status: 'abandoned',
        reason: verdict,
        finishedAt: NOW,
        lostAt: NOW,
        recoveredAt: NOW,
        inDoubtUntil: null,
        attemptInDoubt: null,
        lookups: 0,
        attemptLog: after.attemptLog,
        updatedAt: NOW,
      });
    }
  });

  it('ends as unknown with all that is known about its attempt', () => {
    const after = takeOverRun(run, 'unknown', { ...FACTS, atMostOnce: true }, POLICY, NOW);
    expect(changesOf(run, after)).toEqual({
      status: 'unknown',
      finishedAt: NOW,
      lostAt: NOW,
      recoveredAt: NOW,
      inDoubtUntil: null,
      attemptInDoubt: null,
      lookups: 0,
      latenessMs: begun - run.dueAt,
      error: {
        kind: 'network',
        message: `instance ${ME} was lost during this attempt, which may have been sent`,
      },
      attemptLog: after.attemptLog,
      updatedAt: NOW,
    });
  });

  it('keeps the lateness of its first attempt, and has none if no attempt began', () => {
    const once = { ...FACTS, atMostOnce: true };
    const latenessMs = (given: Partial<RunRecord>) => takeOverRun(lost(given), 'unknown', once, POLICY, NOW).latenessMs;
    expect(latenessMs({ handoffStartedAt: begun, latenessMs: 70 })).toBe(70);
    expect(latenessMs({ inDoubtUntil: NOW - 1_000, latenessMs: null })).toBeNull();
  });
});

describe('the log of a lost attempt', () => {
  const entryOf = (given: Partial<RunRecord>, facts: Partial<LostRunFacts> = {}) =>
    takeOverRun(runRecord(given), 'again', { ...FACTS, ...facts }, POLICY, NOW).attemptLog;
  const claimedAt = NOW - 5_000;
  const begun = NOW - 4_000;

  it('says that nothing was sent only if that is certain', () => {
    const sent = `instance ${ME} was lost during this attempt, which may have been sent`;
    const unsent = `instance ${ME} was lost before it sent this attempt`;
    const rows = [
      [{}, false, claimedAt, 'unknown', sent],
      [{ handoffStartedAt: begun }, false, begun, 'unknown', sent],
      [{ handoffStartedAt: begun }, true, begun, 'unknown', sent],
      [{}, true, claimedAt, 'transient', unsent],
    ] as const;
    for (const [given, atMostOnce, startedAt, outcome, message] of rows)
      expect(entryOf(given, { atMostOnce })).toEqual([
        attemptEntry({ startedAt, outcome, error: { kind: 'network', message } }),
      ]);
  });

  it('says whether it was a recovery, and comes after earlier entries', () => {
    const first = entryOf({ attempts: 1, claimedBy: OTHER });
    expect(entryOf({ recoveries: 1, attemptLog: first })).toMatchObject([
      { attempt: 1, instanceId: OTHER, recovery: false },
      { attempt: 2, instanceId: ME, recovery: true },
    ]);
  });

  it('stays as it is if it contains the attempt already', () => {
    const known = entryOf({})?.map((entry) => ({ ...entry, outcome: 'rejected' as const })) ?? null;
    expect(entryOf({ attemptLog: known })).toEqual(known);
  });

  it('names an instance even if the row names none', () => {
    expect(entryOf({ claimedBy: null, claimedAt: null })).toMatchObject([
      { instanceId: '00000000-0000-0000-0000-000000000000', startedAt: NOW },
    ]);
  });
});

describe('a run of a restored database', () => {
  const RESUMED = { reason: 'restored', lockTtlSeconds: 120 };
  const resumed = (given: Partial<RunRecord>, facts: Partial<LostRunFacts>) =>
    resumeRun(runRecord(given), { ...FACTS, ...facts }, RESUMED, NOW);
  const unclaimed = { claimedBy: null, claimedAt: null };

  it('stays as it is if it cannot have been sent, is in doubt already, or may be sent twice and has no lookup', () => {
    const later = { ...unclaimed, dueAt: NOW + 1 };
    for (const hasLookup of [false, true]) {
      expect(resumed(later, { atMostOnce: true, hasLookup })).toBeNull();
      expect(resumed({ inDoubtUntil: NOW }, { atMostOnce: true, hasLookup })).toBeNull();
    }
    expect(resumed(later, { hasLookup: true })).toBeNull();
    expect(resumed({ inDoubtUntil: NOW }, { hasLookup: true })).toBeNull();
    expect(resumed({}, {})).toBeNull();
  });

  it('ends as unknown at most once', () => {
    for (const given of [{}, { ...unclaimed, dueAt: NOW }, { dueAt: NOW + HOUR }]) {
      const run = runRecord(given);
      const after = resumeRun(run, { ...FACTS, atMostOnce: true }, RESUMED, NOW);
      expect(changesOf(run, after ?? run)).toEqual({
        status: 'unknown',
        error: { kind: 'network', message: 'restored' },
        finishedAt: NOW,
        updatedAt: NOW,
      });
    }
  });

  it('waits for a lookup if its target has one', () => {
    const run = runRecord({ lookups: 2 });
    const after = (atMostOnce: boolean) =>
      resumeRun(run, { ...FACTS, hasLookup: true, atMostOnce }, RESUMED, NOW) ?? run;
    const doubt = { claimedBy: null, claimedAt: null, attemptInDoubt: 2, lookups: 0, updatedAt: NOW };
    expect(changesOf(run, after(false))).toEqual({ ...doubt, dueAt: NOW, inDoubtUntil: NOW });
    expect(changesOf(run, after(true))).toEqual({
      ...doubt,
      dueAt: NOW + 150_000,
      inDoubtUntil: NOW + 150_000,
    });
  });
});
