import { expect, test } from 'vitest';
import { RUN_ENDS } from '../../../src/core/run-end.ts';
import { effectsOfEnd } from '../../../src/core/runs/effect.ts';
import { newRun } from '../../../src/core/runs/new-run.ts';
import type { RunRecord } from '../../../src/core/runs/run-record.ts';
import type { RunStatus } from '../../../src/core/runs/run.ts';

const OF_SCHEDULE = { id: '', scheduledFor: 0, scheduleUid: '', scheduleVersion: 1, scheduleId: 'job' };
const AT_ONCE = { trigger: 'schedule', lane: '', priority: 1, dueAt: 0 } as const;

function effectsOf(status: RunStatus, more: Partial<RunRecord> = {}, before: RunStatus | null = 'pending') {
  const run = newRun({ ...OF_SCHEDULE, ...AT_ONCE, status, ...more }, 0);
  return effectsOfEnd(run, before).map(({ kind, alertKind }) => [kind, alertKind].join(' ').trim());
}

test('each end of a run of a schedule is told to its followers, and opens or ends an episode as it failed or succeeded', () => {
  expect(Object.fromEntries(RUN_ENDS.map((status) => [status, effectsOf(status)]))).toEqual({
    succeeded: ['followers', 'heals failed', 'heals late'],
    failed: ['followers', 'breaks failed'],
    unknown: ['followers', 'breaks failed'],
    abandoned: ['followers', 'breaks failed'],
    skipped: ['followers'],
    cancelled: ['followers'],
  });
});

test.for<[string, string[], Partial<RunRecord>]>([
  ['what waits for it goes on', ['dependents', 'overlap'], { hasDependents: true, overlapGuarded: true }],
  ['failures in a row are counted', ['failing'], { outcomeWatched: true }],
])('where it failed and %s', ([, effects, more]) => {
  expect(effectsOf('failed', more)).toEqual(['followers', ...effects, 'breaks failed']);
});

test('a run that catches up is made: nothing is missed any more', () => {
  expect(effectsOf('succeeded', { trigger: 'catchUp' })).toContain('heals missed');
});

test('of a schedule that was deleted nobody is told that its runs were abandoned', () => {
  expect(effectsOf('abandoned', { reason: 'deleted' })).toEqual(['followers']);
});

test('a cancelled run is called off at its target if that works on it, and else not', () => {
  const cancelled = (before: RunStatus) => effectsOf('cancelled', { reason: 'request' }, before);
  expect(cancelled('running')).toEqual(['followers', 'cancel']);
  expect(['pending', 'waiting'].map((before) => cancelled(before as RunStatus))).toEqual([
    ['followers'],
    ['followers'],
  ]);
});

test('a message that was not delivered, or was cancelled by a person, is passed on; from a one-off run nothing follows', () => {
  const message = (status: RunStatus, reason: string | null = null) => effectsOf(status, { trigger: 'notify', reason });
  expect([message('failed'), message('cancelled', 'request')]).toEqual([['undelivered'], ['undelivered']]);
  expect([message('cancelled'), message('succeeded'), effectsOf('failed', { trigger: 'api' })]).toEqual([[], [], []]);
});
