import { expect, it } from 'vitest';
import { doneText } from '../../web/src/parts/lists/bulk-words.ts';

it('a bulk action says what it did, to how many, and that there are more than one call changes', () => {
  expect(doneText({ changed: 3, remaining: 0 }, 'Pause', 'schedules')).toBe('Paused 3 schedules.');
  expect(doneText({ changed: 1, remaining: 0 }, 'Cancel', 'runs')).toBe('Cancelled 1 run.');
  expect(doneText({ changed: 1000, remaining: 2500 }, 'Retry', 'runs')).toBe(
    'Retried 1,000 runs. 2,500 are left: do it again for the next of them.',
  );
});
