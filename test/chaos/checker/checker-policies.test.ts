import { expect, test } from 'vitest';
import { arrival, at, changed, run, setRun, T0, violationsOf } from './clean-history.ts';
import type { Definition, Edit, History, RunRow } from './history.ts';
import type { Violation } from './violations.ts';

/** Runs that took from one moment to another. */
const lasting = (second: number, seconds: number, given: Partial<RunRow> = {}) =>
  run(second, { finishedAt: at(second + seconds), handedOffAt: at(second + seconds), ...given });
const held = (second: number): Partial<RunRow> => ({
  status: 'skipped',
  reason: 'overlap',
  attempts: 0,
  handedOffAt: null,
  finishedAt: at(second) + 10,
});

type Change = (history: History) => void;
const ran =
  (second: number, row: RunRow): Change =>
  ({ dump }) =>
    void (dump.runs[second - 1] = row);
const arrives =
  (second: number, seconds: number): Change =>
  ({ arrivals }) =>
    void (arrivals[second - 1] = arrival(second, { at: at(seconds) }));
/** At its target from one moment on, and done a tenth of a second later. */
const sentAt = (second: number, seconds: number): Change => {
  const ended = { handedOffAt: at(seconds + 0.1), finishedAt: at(seconds + 0.1) };
  return (history) => [ran(second, run(second, ended)), arrives(second, seconds)].forEach((change) => change(history));
};
const hung =
  (seconds: number): Change =>
  (history) => {
    history.disturbances = [{ kind: 'hang', instance: '1', from: at(seconds), to: at(2.2) }];
  };
const cancelled = (second: number, seconds: number): Change => {
  const given = { status: 'cancelled', reason: 'replaced', handedOffAt: null, finishedAt: at(seconds) };
  return (history) => setRun(history, second, given);
};
const skipSecond: Change = (history) => {
  history.dump.runs[0] = lasting(1, 1.2);
  setRun(history, 2, held(2));
  history.arrivals.splice(1, 1);
};
const skipThird: Change = (history) => {
  history.healedAt = at(0);
  history.dump.runs[2] = run(3, held(3));
  history.arrivals.splice(2, 1);
};

/** The first run takes until 2.5 s, so that the second is skipped, waits, or takes its place. */
const OVERLAPPING: [Definition['overlap'], string, boolean, Change[]][] = [
  ['skip', 'skipped while another was active', true, [skipSecond]],
  ['skip', 'skipped, and nothing was active', false, [skipSecond, ran(1, run(1))]],
  [
    'skip',
    'skipped while another had ended, and no instance could write that',
    true,
    [skipSecond, ran(1, run(1, { updatedAt: at(2.4) }))],
  ],
  [
    'skip',
    'skipped while another had ended, and the commit of that hung',
    true,
    [skipSecond, ran(1, run(1)), hung(1.2)],
  ],
  [
    'skip',
    'skipped while another had ended, long before an instance hung',
    false,
    [skipSecond, ran(1, run(1)), hung(1.8)],
  ],
  ['skip', 'sent while another was active', false, [ran(1, lasting(1, 1.9))]],
  [
    'skip',
    'kept while another was active, and sent when that had ended',
    false,
    [ran(1, lasting(1, 2.4)), sentAt(2, 3.5), skipThird],
  ],
  [
    'queue',
    'kept while another was active, and sent when that had ended',
    true,
    [ran(1, lasting(1, 1.5)), sentAt(2, 2.6)],
  ],
  [
    'queue',
    'two of them kept while another was active',
    false,
    [ran(1, lasting(1, 4)), sentAt(2, 5.1), sentAt(3, 5.3)],
  ],
  ['replace', 'the active one cancelled for the newer one', true, [cancelled(1, 2.01)]],
  ['replace', 'cancelled for none that came later', false, [cancelled(3, 3.2)]],
];

const allOf =
  (changes: readonly Change[] = []): Change =>
  (history) => {
    for (const change of changes) change(history);
  };

test.for(OVERLAPPING)('overlap %s, %s: right is %s', ([overlap, , isRight, changes]) => {
  expect(violationsOf(changed(allOf(changes), { overlap }))).toEqual(isRight ? [] : ['overlap']);
});

test('a run that was kept in disturbed times says nothing: recording and judging may be far apart', () => {
  const [, , , changes] = OVERLAPPING.find(([, what]) => what.startsWith('two of them')) ?? [];
  const history = changed(allOf(changes), { overlap: 'queue' });
  history.disturbances.push({ kind: 'delay', instance: '2', from: at(4), to: at(5) });
  expect(violationsOf(history)).toEqual([]);
});

/** Planned together 100 s later: 1 and 2 were missed, and 3 as well. */
function missed(catchUp: Definition['catchUp'], rows: Partial<RunRow>[], limit = 100): History {
  return changed(
    (history) => {
      history.dump.at = at(200);
      history.dump.instances = [];
      history.arrivals = [];
      history.dump.runs = rows.map((given) => {
        const second = ((given.scheduledFor ?? at(3)) - T0) / 1000;
        const fired = given.status === undefined;
        if (fired) history.arrivals.push(arrival(second, { at: at(101) }));
        const times = { createdAt: at(100), finishedAt: at(102), handedOffAt: fired ? at(102) : null };
        return run(second, { trigger: 'catchUp', ...times, attempts: fired ? 1 : 0, ...given });
      });
    },
    { catchUp, catchUpLimit: limit },
  );
}

const MISSED: Partial<RunRow> = { status: 'skipped', reason: 'missed', coalesced: 2, coalescedFrom: at(1) };
const LIMIT: Partial<RunRow> = { status: 'skipped', reason: 'limit' };

test.for([
  ['skip', [MISSED], 100, true],
  ['skip', [{ coalesced: 2, coalescedFrom: at(1) }], 100, false],
  ['latest', [{ coalesced: 2, coalescedFrom: at(1) }], 100, true],
  ['latest', [MISSED], 100, false],
  ['latest', [1, 2, 3].map((second) => ({ scheduledFor: at(second) })), 100, false],
  ['all', [1, 2, 3].map((second) => ({ scheduledFor: at(second) })), 100, true],
  ['all', [{ ...LIMIT, scheduledFor: at(1) }, { scheduledFor: at(2) }, { scheduledFor: at(3) }], 2, true],
  ['all', [{ ...LIMIT, scheduledFor: at(2), coalesced: 1, coalescedFrom: at(1) }, {}], 2, false],
  ['all', [1, 2, 3].map((second) => ({ scheduledFor: at(second) })), 2, false],
  ['all', [{ coalesced: 2, coalescedFrom: at(1) }], 100, false],
] as [Definition['catchUp'], Partial<RunRow>[], number, boolean][])(
  'catchUp %s of three missed fires, as %j with the limit %d: right is %s',
  ([catchUp, rows, limit, isRight]) => {
    // What is only told of is sent to no target, so the canary may be silent.
    const found = violationsOf(missed(catchUp, rows, limit)).filter((violation) => violation !== 'liveness');
    expect(found.includes('catchUp')).toBe(!isRight);
    if (isRight) expect(found).toEqual([]);
  },
);

test('a fire that jitter may have moved over the pause may be there or not', () => {
  const jittered = (change: (history: History) => void) => violationsOf(changed(change, { jitterSeconds: 600 }));
  expect(jittered(() => undefined)).toEqual([]);
  const withoutThird = (history: History) => {
    history.healedAt = at(0);
    history.dump.runs.pop();
    history.arrivals.pop();
  };
  const withoutFirst = (history: History) => {
    history.dump.runs.shift();
    history.arrivals.shift();
  };
  expect(jittered(withoutThird)).toEqual([]);
  expect(jittered(withoutFirst)).toEqual(['lost']);
});

test.for([
  ['acked', 1, []],
  ['unknown', 0, []],
  ['unknown', 1, []],
  ['acked', 0, ['lost']],
  ['refused', 1, ['phantom']],
  ['acked', 2, ['plannedTwice']],
] as [Edit['outcome'], number, Violation[]][])(
  'a fire by hand that was %s has %d runs: %j',
  ([outcome, count, found]) => {
    const history = changed((fired) => {
      const times = { sentAt: at(2.2), endedAt: at(2.4) };
      fired.fires.push({ scheduleId: 'canary', key: 'k', outcome, ...times });
      for (let index = 0; index < count; index += 1) {
        const id = `manual-${index}`;
        fired.dump.runs.push(run(2.3, { id, trigger: 'manual', key: 'k' }));
        fired.arrivals.push(arrival(2.3, { runId: id }));
      }
    });
    expect(violationsOf(history)).toEqual(found);
  },
);

test('a manual run that no caller asked for is found', () => {
  const history = changed(({ dump, arrivals }) => {
    dump.runs.push(run(2.3, { id: 'manual', trigger: 'manual', key: 'k' }));
    arrivals.push(arrival(2.3, { runId: 'manual' }));
  });
  expect(violationsOf(history)).toEqual(['phantom']);
});

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
  expect(together(1, ({ dump }) => Object.assign(dump.runs[0] ?? {}, { endedAt: at(1.9) }))).not.toContain('limit');
  expect(
    together(1, ({ arrivals }) => Object.assign(arrivals[0] ?? {}, { answeredAt: at(2.1), delivered: false })),
  ).not.toContain('limit');
  const frozen = { kind: 'freeze', instance: '1', from: at(0.8), to: at(1.01) };
  expect(together(1, ({ disturbances }) => void disturbances.push(frozen))).not.toContain('limit');
});
