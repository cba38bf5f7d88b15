import { expect, it } from 'vitest';
import { slowestOf, summaryOf } from './summary.ts';
import { workersFor } from './workers.ts';

it('a run says how long it took, what it left to the long one, and what it skipped and why', () => {
  const skipped = [
    { name: 'a.test.ts > wrong clocks', reason: 'needs libfaketime' },
    { name: 'b.test.ts > as root', reason: 'only as root' },
  ];
  expect(summaryOf(185.4, { long: 57, skipped }).split('\n')).toEqual([
    'Took 3 min 5 s.',
    'Left to `npm run test:long`: 57 tests.',
    'Skipped 2 tests:',
    '- a.test.ts > wrong clocks: needs libfaketime',
    '- b.test.ts > as root: only as root',
  ]);
  expect(summaryOf(59.4, { long: 0, skipped: [] })).toBe('Took 59 s.\nSkipped nothing.');
});

it('a run names the twenty files that took longest, the slowest first', () => {
  const files = Array.from({ length: 25 }, (_, index) => ({ name: `${index}.test.ts`, seconds: index }));
  const lines = slowestOf(files).split('\n');
  expect(lines.slice(0, 2)).toEqual(['The 20 slowest of 25 files, in seconds:', '  24.0  24.test.ts']);
  expect(lines).toHaveLength(21);
  expect(lines.at(-1)).toBe('   5.0  5.test.ts');
});

it('as many test files run at once as cores and free memory carry, and always one', () => {
  const [little, much] = [1024 ** 3, 64 * 1024 ** 3];
  const [one, two, many] = [workersFor(1, much), workersFor(2, much), workersFor(16, much)];
  expect([one > 1, two > one, many > 16]).toEqual([true, true, true]);
  expect(workersFor(16, little)).toBeLessThan(two);
  expect(workersFor(16, 0)).toBe(1);
});
