import type { AttemptEntry } from '../../src/core/runs/attempts/outcome.ts';
import { randomRunId } from '../../src/core/runs/run.ts';
import { newRun } from '../../src/core/runs/new-run.ts';
import type { RunRecord } from '../../src/core/runs/run-record.ts';

/** A moment that tests of pure functions take for now. */
export const NOW = Date.UTC(2026, 10, 20, 12);
export const ME = '00000000-0000-4000-8000-00000000000a';
export const OTHER = '00000000-0000-4000-8000-00000000000b';

/** A pending run of a schedule, due for an hour and claimed by ME for its second attempt, unless told otherwise. */
export function runRecord(given: Partial<RunRecord> = {}): RunRecord {
  const scheduledFor = NOW - 3_600_000;
  const run = {
    id: randomRunId(scheduledFor),
    scheduledFor,
    scheduleUid: '00000000-0000-4000-8000-00000000000c',
    scheduleVersion: 1,
    scheduleId: 'nightly',
    trigger: 'schedule',
    status: 'pending',
    lane: 'http https://example.com',
    priority: 2,
    dueAt: scheduledFor,
    attempts: 2,
    failures: 1,
    claimedBy: ME,
    claimedAt: NOW - 5_000,
    firstClaimedAt: NOW - 60_000,
    latenessMs: 70,
  } as const;
  return newRun({ ...run, ...given }, given.createdAt ?? scheduledFor);
}

/** Of the second attempt of ME, of which nothing is known, unless told otherwise. */
export function attemptEntry(given: Partial<AttemptEntry> = {}): AttemptEntry {
  return {
    ...{ attempt: 2, instanceId: ME, startedAt: NOW - 5_000, finishedAt: NOW, outcome: 'unknown' },
    ...{ statusCode: null, error: null, recovery: false, lookup: null },
    ...given,
  };
}

/** What is different in the second of two records: by the name of the field. */
export function changesOf(before: RunRecord, after: RunRecord): Partial<RunRecord> {
  const was = new Map<string, unknown>(Object.entries(before));
  return Object.fromEntries(Object.entries(after).filter(([key, value]) => was.get(key) !== value));
}
