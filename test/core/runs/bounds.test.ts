import { expect, it } from 'vitest';
import { boundsOf, boundsOfBackfill, judgeEnd, withVerdict } from '../../../src/core/runs/bounds.ts';
import { RUN_ENDS } from '../../../src/core/run-end.ts';
import { NOW, runRecord } from '../../support/run-record.ts';

const BOTH = { startWithinSeconds: 60, finishWithinSeconds: 900 };
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
  expect(withVerdict(run, judgeEnd(run))).toMatchObject({ ...NONE, unmet: ['start', 'finish'] });
  expect(withVerdict(run, null)).toMatchObject({ ...NONE, unmet: ['start'] });
});
