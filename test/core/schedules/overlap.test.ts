import { describe, expect, it } from 'vitest';
import { type OverlappingRun, judgeOverlap } from '../../../src/core/schedules/overlap.ts';
import { OVERLAPS, type Overlap } from '../../../src/core/schedules/schedule.ts';

/** `pending a, waiting b`: in the order in which they came. */
function open(text: string): OverlappingRun[] {
  if (text === '') return [];
  return text.split(', ').map((one, index) => {
    const [status, id] = one.split(' ') as [OverlappingRun['status'], string];
    return { id, status, createdAt: 1_000 + index };
  });
}

/** `pending a, skipped b`: in the order of ids. */
function verdicts(overlap: Overlap, runs: readonly OverlappingRun[]): string {
  const judged = [...judgeOverlap(overlap, runs)].sort(([a], [b]) => (a < b ? -1 : 1));
  return judged.map(([id, verdict]) => `${verdict} ${id}`).join(', ');
}

/** What is open, and what becomes of it under each policy; what is not named stays as it is. */
const TABLE: [open: string, expected: Record<Overlap, string>][] = [
  ['', { allow: '', skip: '', queue: '', replace: '' }],
  ['pending a', { allow: '', skip: '', queue: '', replace: '' }],
  ['running a, pending b', { allow: '', skip: '', queue: '', replace: '' }],
  ['waiting a', { allow: 'pending a', skip: 'pending a', queue: 'pending a', replace: 'pending a' }],
  [
    'waiting a, waiting b',
    {
      allow: 'pending a, pending b',
      skip: 'pending a, skipped b',
      queue: 'pending a',
      replace: 'cancelled a, pending b',
    },
  ],
  [
    'waiting a, waiting b, waiting c, waiting d',
    {
      allow: 'pending a, pending b, pending c, pending d',
      skip: 'pending a, skipped b, skipped c, skipped d',
      queue: 'pending a, skipped b, skipped c',
      replace: 'cancelled a, cancelled b, cancelled c, pending d',
    },
  ],
  [
    'pending a, waiting b',
    { allow: 'pending b', skip: 'skipped b', queue: '', replace: 'cancelled a, pending b' },
  ],
  [
    'running a, waiting b',
    { allow: 'pending b', skip: 'skipped b', queue: '', replace: 'cancelled a, pending b' },
  ],
  [
    'running a, waiting b, waiting c, waiting d',
    {
      allow: 'pending b, pending c, pending d',
      skip: 'skipped b, skipped c, skipped d',
      queue: 'skipped b, skipped c',
      replace: 'cancelled a, cancelled b, cancelled c, pending d',
    },
  ],
  // Two are active, since an edit or a retry: nothing more starts until both have ended.
  [
    'running a, pending b, waiting c',
    { allow: 'pending c', skip: 'skipped c', queue: '', replace: 'cancelled a, cancelled b, pending c' },
  ],
  // One that was opened again is active, though it came later.
  [
    'waiting a, running b',
    { allow: 'pending a', skip: 'skipped a', queue: '', replace: 'pending a, cancelled b' },
  ],
];

describe('among the open runs of a schedule', () => {
  const rows = TABLE.flatMap(([text, expected]) =>
    OVERLAPS.map((overlap) => ({ overlap, text, expected: expected[overlap] })),
  );
  it.each(rows)('$overlap: $text becomes $expected', ({ overlap, text, expected }) => {
    expect(verdicts(overlap, open(text))).toBe(expected);
    // In whatever order they are found.
    expect(verdicts(overlap, open(text).reverse())).toBe(expected);
  });

  it('those recorded at one moment are in the order of their fire times', () => {
    const runs = ['c', 'a', 'b'].map((id) => ({ id, status: 'waiting' as const, createdAt: 1_000 }));
    expect(verdicts('skip', runs)).toBe('pending a, skipped b, skipped c');
    expect(verdicts('queue', runs)).toBe('pending a, skipped b');
    expect(verdicts('replace', runs)).toBe('cancelled a, cancelled b, pending c');
  });
});
