import { expect, it } from 'vitest';
import {
  boundsOf,
  boundsOfBackfill,
  judgeEnd,
  judgeSuccess,
  judgedSuccess,
  withVerdicts,
} from '../../../src/core/runs/bounds.ts';
import { RUN_ENDS } from '../../../src/core/run-end.ts';
import { NOW, attemptEntry, runRecord } from '../../support/run-record.ts';

const BOTH = { startWithinSeconds: 60, finishWithinSeconds: 900, atLeastSeconds: null, result: null };
const NONE = { nextBound: null, boundAt: null, finishWithinSeconds: null };

it('the bound of the beginning counts from when the run is due, that of the end from its beginning', () => {
  expect(boundsOf(BOTH, NOW)).toEqual({
    nextBound: 'start',
    boundAt: NOW + 60_000,
    finishWithinSeconds: 900,
  });
  expect(boundsOf({ ...BOTH, startWithinSeconds: null }, NOW)).toEqual({ ...NONE, finishWithinSeconds: 900 });
  expect(boundsOf({ ...BOTH, finishWithinSeconds: null }, NOW)).toMatchObject({ finishWithinSeconds: null });
  expect(boundsOf(null, NOW)).toEqual(NONE);
});

it('a backfilled run is judged by its end alone', () => {
  expect(boundsOfBackfill(BOTH)).toEqual({ ...NONE, finishWithinSeconds: 900 });
  expect(boundsOfBackfill(null)).toEqual(NONE);
});

it.for(RUN_ENDS)('%s: an end after the bound breaks it, and only the end of its work keeps it', (status) => {
  const run = (bound: 'start' | 'finish', more = {}) =>
    runRecord({ status, finishedAt: NOW, nextBound: bound, boundAt: NOW, ...more });
  for (const bound of ['start', 'finish'] as const)
    expect(judgeEnd(run(bound, { boundAt: NOW - 1 }))).toEqual({ bound, isKept: false, at: NOW - 1 });
  const isWorkDone = status === 'succeeded' || status === 'failed';
  expect(judgeEnd(run('finish'))).toEqual(isWorkDone ? { bound: 'finish', isKept: true, at: NOW } : null);
  expect(judgeEnd(run('start'))).toBeNull();
  expect(judgeEnd(run('finish', { nextBound: null, boundAt: null }))).toBeNull();
});

it('what a run has not kept is added to what it had not kept before, and nothing is left to judge', () => {
  const run = runRecord({
    status: 'failed',
    finishedAt: NOW,
    nextBound: 'finish',
    boundAt: 0,
    unmet: ['start'],
  });
  const verdict = judgeEnd(run);
  expect(withVerdicts(run, verdict ? [verdict] : [])).toMatchObject({ ...NONE, unmet: ['start', 'finish'] });
  expect(withVerdicts(run, [])).toMatchObject({ ...NONE, unmet: ['start'] });
});

const attempt = (number: number, startedAt: number) =>
  attemptEntry({ attempt: number, startedAt, outcome: 'transient' });
const tooFast = (more: object) =>
  judgeSuccess(
    runRecord({ status: 'succeeded', finishedAt: NOW, handoffStartedAt: NOW - 10_000, ...more }),
    judgedSuccess({ atLeastSeconds: 10, result: null }, () => null),
  ).map(({ isKept }) => !isKept);

it('a success is too fast that comes sooner after its first attempt than is expected, which no other end is', () => {
  expect(tooFast({})).toEqual([false]);
  expect(tooFast({ handoffStartedAt: NOW - 9_999 })).toEqual([true]);
  expect(tooFast({ handoffStartedAt: NOW - 1, attemptLog: [attempt(1, NOW - 10_000)] })).toEqual([false]);
  // What was before a person had it tried again is another story.
  expect(tooFast({ handoffStartedAt: NOW - 1, retriedAfter: 1, attemptLog: [attempt(1, NOW - 10_000)] })).toEqual([
    true,
  ]);
  for (const status of RUN_ENDS.filter((one) => one !== 'succeeded'))
    expect(tooFast({ status, handoffStartedAt: NOW - 1 })).toEqual([]);
});

it('a success whose result is none that is expected says why, and one of which nothing is expected is not judged', () => {
  const run = runRecord({ status: 'succeeded', finishedAt: NOW, handoffStartedAt: NOW, unmet: ['start'] });
  const rows = [{ pointer: '/rows', min: 1, max: null, json: null }];
  const judge = (fault: string | null) =>
    withVerdicts(
      run,
      judgeSuccess(
        run,
        judgedSuccess({ atLeastSeconds: null, result: rows }, () => fault),
      ),
    );
  expect(judge('no rows')).toMatchObject({ unmet: ['start', 'result'], unmetReason: 'no rows' });
  expect(judge(null)).toMatchObject({ unmet: ['start'], unmetReason: null });
  expect(judgedSuccess(null, () => 'never asked')).toBeNull();
  expect(judgeSuccess(run, null)).toEqual([]);
});
