import { expect, test } from 'vitest';
import { arrival, at, changed, run, violationsOf } from './clean-history.ts';
import type { History } from './history.ts';

/** Three runs of one limit, two of which are at the receiver at one moment: from 2 s to 2.025 s, and from 2.01 s on. */
function together(most: number, change: (history: History) => void = () => undefined): string[] {
  const given = (history: History) => {
    history.limits = { narrow: most };
    history.dump.runs[0] = run(1, {
      endedAt: at(2.4),
      finishedAt: at(2.4),
      handedOffAt: at(2.4),
      updatedAt: at(2.4),
    });
    history.arrivals = [arrival(1, { answeredAt: at(2.4) }), arrival(2), arrival(3)];
    change(history);
  };
  return violationsOf(changed(given, { limit: 'narrow', timeoutSeconds: 3 }));
}

test('as many runs as the limit allows are no violation; one more is', () => {
  expect(together(2)).toEqual([]);
  expect(together(1)).toEqual(['limit']);
});

test('a run counts once, however many requests of it are open', () => {
  const twice = (history: History) => {
    history.arrivals = [
      arrival(1, { answeredAt: at(2.4) }),
      arrival(1, { at: at(2.1), attempt: 2, answeredAt: at(2.3) }),
    ];
  };
  expect(together(1, twice)).not.toContain('limit');
});

test('open requests of a run do not count if it has ended, was given up, is out of time or has a thawed sender', () => {
  expect(together(1, ({ dump }) => Object.assign(dump.runs[0] ?? {}, { endedAt: at(1.9) }))).not.toContain(
    'limit',
  );
  expect(
    together(1, ({ arrivals }) =>
      Object.assign(arrivals[0] ?? {}, { answeredAt: at(2.1), delivered: false }),
    ),
  ).not.toContain('limit');
  const frozen = { kind: 'freeze', instance: '1', from: at(0.8), to: at(1.01) };
  expect(together(1, ({ disturbances }) => void disturbances.push(frozen))).not.toContain('limit');
});
