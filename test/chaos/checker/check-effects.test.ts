import { expect, test } from 'vitest';
import { at, changed, cleanHistory, follower, run, violationsAsItIs } from './clean-history.ts';

test('a clean history, in which each end is followed once, has no violation', () => {
  expect(violationsAsItIs(cleanHistory())).toEqual([]);
});

test.each([
  ['an end that nothing follows', (all: ReturnType<typeof follower>[]) => all.slice(1)],
  ['an end that two runs follow', (all) => [...all, { ...follower(2), id: 'again' }]],
  ['a run that follows one which there is not', (all) => [...all, { ...follower(9), id: 'of none' }]],
  ['a run that follows before the end', (all) => all.map((one) => ({ ...one, createdAt: at(0) }))],
])('%s is found', (_, change) => {
  const broken = changed(({ dump }) => {
    dump.followers = change(dump.followers);
  });
  expect(violationsAsItIs(broken)).toEqual(['effects']);
});

test('an effect that was never done is found', () => {
  const broken = changed(({ dump }) => {
    dump.effects = [{ id: 1, kind: 'overlap', runId: 'run-1', failures: 0, error: null }];
  });
  expect(violationsAsItIs(broken)).toEqual(['effects']);
});

test.each([
  ['both tables', { table: 'runs' as const, finishedAt: null, status: 'pending' }],
  ['history twice', {}],
])('a run in %s is found', (_, given) => {
  const broken = changed(({ dump }) => {
    dump.runs = [...dump.runs, run(2, given)];
  });
  expect(violationsAsItIs(broken)).toContain('tables');
});

test('an ended run among the open ones is found', () => {
  const broken = changed(({ dump }) => {
    dump.runs = dump.runs.map((one) => ({ ...one, table: 'runs' as const }));
  });
  expect(violationsAsItIs(broken)).toEqual(['tables']);
});
