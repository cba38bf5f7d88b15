import { describe, expect, it } from 'vitest';
import { type OpenRuns, judgeOverlap } from '../../../src/core/schedules/overlap.ts';
import { OVERLAPS, type Overlap } from '../../../src/core/schedules/schedule.ts';

/** `pending a, waiting b`: in the order in which they came. `beside c`: active, and does not give way. `more`: more wait. */
function open(text: string): OpenRuns {
  const runs = text.split(', ').map((one) => one.split(' '));
  const of = (...statuses: string[]) =>
    runs.flatMap(([status = '', id]) => (id !== undefined && statuses.includes(status) ? [id] : []));
  return {
    waiting: of('waiting'),
    moreWait: text.endsWith('more'),
    isActive: of('pending', 'running', 'beside').length > 0,
    replaceable: of('pending', 'running'),
  };
}

/** `pending a, skipped b`: in the order of ids. */
function verdicts(overlap: Overlap, runs: OpenRuns): string {
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
  ['pending a, waiting b', { allow: 'pending b', skip: 'skipped b', queue: '', replace: 'cancelled a, pending b' }],
  ['running a, waiting b', { allow: 'pending b', skip: 'skipped b', queue: '', replace: 'cancelled a, pending b' }],
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
  // A backfilled or retried run starts beside others, and gives way to none.
  ['beside a', { allow: '', skip: '', queue: '', replace: '' }],
  ['beside a, waiting b', { allow: 'pending b', skip: 'skipped b', queue: '', replace: 'pending b' }],
  [
    'beside a, running b, waiting c',
    { allow: 'pending c', skip: 'skipped c', queue: '', replace: 'cancelled b, pending c' },
  ],
  // Of very many only the first are judged at once: the newest is not among them.
  [
    'waiting a, waiting b, more',
    {
      allow: 'pending a, pending b',
      skip: 'pending a, skipped b',
      queue: 'pending a, skipped b',
      replace: 'cancelled a, cancelled b',
    },
  ],
  [
    'running a, waiting b, waiting c, more',
    {
      allow: 'pending b, pending c',
      skip: 'skipped b, skipped c',
      queue: 'skipped b, skipped c',
      replace: 'cancelled b, cancelled c',
    },
  ],
];

describe('among the open runs of a schedule', () => {
  const rows = TABLE.flatMap(([text, expected]) =>
    OVERLAPS.map((overlap) => ({ overlap, text, expected: expected[overlap] })),
  );
  it.each(rows)('$overlap: $text becomes $expected', ({ overlap, text, expected }) => {
    expect(verdicts(overlap, open(text))).toBe(expected);
  });

  it('a policy that only a later version knows leaves all as they are', () => {
    expect(verdicts('of a later version' as Overlap, open('running a, waiting b'))).toBe('');
  });
});
