import { expect, test } from 'vitest';
import { T0, arrival, at, changed, run, setRun, violationsOf } from './clean-history.ts';
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

/** The first run takes until 2.5 s, so that the second is skipped, waits, or takes its place. */
const OVERLAPPING: [Definition['overlap'], string, boolean, (history: History) => void][] = [
  ['skip', 'skipped while another was active', true, (history) => skipSecond(history)],
  [
    'skip',
    'skipped, and nothing was active',
    false,
    (history) => {
      skipSecond(history);
      history.dump.runs[0] = run(1);
    },
  ],
  [
    'skip',
    'skipped while another had ended, and no instance could write that',
    true,
    (history) => {
      skipSecond(history);
      history.dump.runs[0] = run(1, { updatedAt: at(2.4) });
    },
  ],
  [
    'skip',
    'skipped while another had ended, and the commit of that hung',
    true,
    (history) => {
      skipSecond(history);
      history.dump.runs[0] = run(1);
      history.disturbances = [{ kind: 'hang', instance: '1', from: at(1.2), to: at(2.2) }];
    },
  ],
  [
    'skip',
    'skipped while another had ended, long before an instance hung',
    false,
    (history) => {
      skipSecond(history);
      history.dump.runs[0] = run(1);
      history.disturbances = [{ kind: 'hang', instance: '1', from: at(1.8), to: at(2.2) }];
    },
  ],
  [
    'skip',
    'sent while another was active',
    false,
    (history) => void (history.dump.runs[0] = lasting(1, 1.9)),
  ],
  [
    'skip',
    'kept while another was active, and sent when that had ended',
    false,
    (history) => {
      history.healedAt = at(0);
      history.dump.runs[0] = lasting(1, 2.4);
      history.dump.runs[1] = run(2, { handedOffAt: at(3.6), finishedAt: at(3.6) });
      history.arrivals[1] = arrival(2, { at: at(3.5) });
      history.dump.runs[2] = run(3, held(3));
      history.arrivals.splice(2, 1);
    },
  ],
  [
    'queue',
    'kept while another was active, and sent when that had ended',
    true,
    (history) => {
      history.dump.runs[0] = lasting(1, 1.5);
      history.dump.runs[1] = run(2, { handedOffAt: at(2.7), finishedAt: at(2.7) });
      history.arrivals[1] = arrival(2, { at: at(2.6) });
    },
  ],
  [
    'queue',
    'two of them kept while another was active',
    false,
    (history) => {
      history.dump.runs[0] = lasting(1, 4);
      history.dump.runs[1] = run(2, { handedOffAt: at(5.2), finishedAt: at(5.2) });
      history.dump.runs[2] = run(3, { handedOffAt: at(5.4), finishedAt: at(5.4) });
      history.arrivals[1] = arrival(2, { at: at(5.1) });
      history.arrivals[2] = arrival(3, { at: at(5.3) });
    },
  ],
  [
    'replace',
    'the active one cancelled for the newer one',
    true,
    (history) => {
      setRun(history, 1, {
        status: 'cancelled',
        reason: 'replaced',
        handedOffAt: null,
        finishedAt: at(2.01),
      });
    },
  ],
  [
    'replace',
    'cancelled for none that came later',
    false,
    (history) =>
      setRun(history, 3, { status: 'cancelled', reason: 'replaced', handedOffAt: null, finishedAt: at(3.2) }),
  ],
];

function skipSecond(history: History): void {
  history.dump.runs[0] = lasting(1, 1.2);
  setRun(history, 2, held(2));
  history.arrivals.splice(1, 1);
}

test.for(OVERLAPPING)('overlap %s, %s: right is %s', ([overlap, , isRight, change]) => {
  expect(violationsOf(changed(change, { overlap }))).toEqual(isRight ? [] : ['overlap']);
});

test('a run that was kept in disturbed times says nothing: recording and judging may be far apart', () => {
  const [, , , change] = OVERLAPPING.find(([, what]) => what.startsWith('two of them')) ?? [];
  const history = changed((disturbed) => change?.(disturbed), { overlap: 'queue' });
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
  const jittered = (change: (history: History) => void) =>
    violationsOf(changed(change, { jitterSeconds: 600 }));
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
