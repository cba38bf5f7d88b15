import { check } from './checker.ts';
import type { Arrival, Definition, Edit, FollowerRow, History, RunRow } from './history.ts';
import { type Violation, foundIn } from './violations.ts';

export const T0 = Date.UTC(2030, 0, 1);
export const at = (seconds: number): number => T0 + seconds * 1000;

export const DEFINITION: Definition = {
  cron: '* * * * * *',
  everySeconds: null,
  jitterSeconds: 0,
  catchUp: 'latest',
  catchUpLimit: 100,
  graceSeconds: 60,
  overlap: 'allow',
  limit: null,
  holdMs: 0,
  enabled: true,
  delivery: 'atLeastOnce',
  lookup: false,
  endpoint: false,
  command: null,
  maxAttempts: 3,
  timeoutSeconds: 1,
};

/** One schedule, made at 0.5 s, paused at 3.5 s: three fires, all delivered at once. */
export function cleanHistory(own: Partial<Definition> = {}): History {
  const edit = (marker: string, seconds: number, definition: Partial<Definition>): Edit => ({
    scheduleId: 'canary',
    kind: 'put',
    marker,
    definition: { ...DEFINITION, ...own, ...definition },
    sentAt: at(seconds) - 5,
    endedAt: at(seconds) + 5,
    outcome: 'acked',
  });
  return {
    settings: {
      canaryId: 'canary',
      ttlSeconds: 4,
      lockTtlSeconds: 5,
      maxRecoveries: 3,
      maxRecoveryAgeSeconds: 86_400,
    },
    healedAt: at(2.5),
    limits: {},
    edits: [edit('m1', 0.5, {}), edit('m2', 3.5, { enabled: false })],
    fires: [],
    arrivals: [1, 2, 3].map((second) => arrival(second)),
    lookups: [],
    notices: [],
    notifier: null,
    disturbances: [],
    commands: null,
    beats: [],
    dump: {
      at: at(60),
      runs: [1, 2, 3].map((second) => run(second)),
      followers: [1, 2, 3].map((second) => follower(second)),
      effects: [],
      alerts: [],
      messages: [],
      attempts: [],
      versions: [
        { scheduleUid: 'u', scheduleId: 'canary', version: 1, change: 'created', at: at(0.5), marker: 'm1' },
        { scheduleUid: 'u', scheduleId: 'canary', version: 2, change: 'updated', at: at(3.5), marker: 'm2' },
      ],
      schedules: [{ uid: 'u', id: 'canary', enabled: false, nextFireAt: null, lockedBy: null, lockedAt: null }],
      instances: [{ id: 'i', startedAt: at(-1), heartbeatAt: at(59), diedAt: null }],
    },
    instances: [{ name: '1', ready: true, ticking: true }],
    stats: null,
  };
}

/** What follows the end of that run. */
export function follower(second: number): FollowerRow {
  return { id: `follower-${second}`, parentRunId: `run-${second}`, createdAt: at(second) + 40 };
}

export function run(second: number, given: Partial<RunRow> = {}): RunRow {
  return {
    id: `run-${second}`,
    table: 'history',
    endedAt: at(second) + 30,
    scheduleUid: 'u',
    scheduleId: 'canary',
    scheduleVersion: 1,
    scheduledFor: at(second),
    trigger: 'schedule',
    status: 'succeeded',
    reason: null,
    key: null,
    attempts: 1,
    failures: 0,
    recoveries: 0,
    coalesced: 0,
    coalescedFrom: null,
    claimedBy: 'i',
    createdAt: at(second) + 10,
    updatedAt: at(second) + 30,
    handedOffAt: at(second) + 30,
    finishedAt: at(second) + 30,
    lostAt: null,
    recoveredAt: null,
    ...given,
  };
}

export function arrival(second: number, given: Partial<Arrival> = {}): Arrival {
  return {
    at: at(second) + 20,
    sender: '1.1',
    runId: `run-${second}`,
    scheduleId: 'canary',
    scheduledFor: at(second),
    attempt: 1,
    marker: 'm1',
    fault: null,
    answer: 'ok',
    answeredAt: at(second) + 25,
    delivered: true,
    ...given,
  };
}

/** Of a history in which every end is followed as it should be. */
export function violationsOf(history: History): Violation[] {
  const followers = history.dump.runs
    .filter(({ finishedAt }) => finishedAt !== null)
    .map(({ id, finishedAt }) => ({
      id: `follower of ${id}`,
      parentRunId: id,
      createdAt: (finishedAt ?? 0) + 10,
    }));
  return violationsAsItIs({ ...history, dump: { ...history.dump, followers } });
}

/** Of a history with the followers that it says. */
export function violationsAsItIs(history: History): Violation[] {
  return Object.keys(foundIn(check(history).violations).examples) as Violation[];
}

/** The history with one thing changed in it. */
export function changed(change: (history: History) => void, own?: Partial<Definition>): History {
  const history = cleanHistory(own);
  change(history);
  return history;
}

export function setRun(history: History, second: number, given: Partial<RunRow>): void {
  history.dump.runs = history.dump.runs.map((row) => (row.id === `run-${second}` ? { ...row, ...given } : row));
}
