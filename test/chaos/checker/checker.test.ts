import { expect, test } from 'vitest';
import { check } from './checker.ts';
import {
  arrival,
  at,
  changed,
  cleanHistory,
  DEFINITION,
  follower,
  run,
  setRun,
  violationsAsItIs,
  violationsOf,
} from './clean-history.ts';
import type { Arrival, Edit, History, RunRow } from './history.ts';
import { intervals, occurrences } from './timeline.ts';
import { type Violation, VIOLATIONS } from './violations.ts';

test('a campaign in which all went well has no violation', () => {
  expect(check(cleanHistory())).toMatchObject({ ok: true, expectedFires: 3 });
});

test('the oracle finds the seconds and minutes of an expression, after one moment and up to another', () => {
  const from = Date.UTC(2030, 0, 1, 23, 59, 50);
  const seconds = (cron: string, length: number) =>
    occurrences(cron, from, from + length * 1000).map((moment) => (moment - from) / 1000);
  expect(seconds('* * * * * *', 3)).toEqual([1, 2, 3]);
  expect(seconds('*/4 * * * * *', 20)).toEqual([2, 6, 10, 14, 18]);
  expect(seconds('* * * * *', 130)).toEqual([10, 70, 130]);
  expect(seconds('*/2 * * * *', 130)).toEqual([10, 130]);
  expect(seconds('30 * * * * *', 130)).toEqual([40, 100]);
  expect(() => seconds('0 0 * * MON', 1)).toThrow('cannot read');
});

const arrives =
  (second: number, given: Partial<Arrival>) =>
  ({ arrivals }: History): void =>
    void arrivals.splice(second - 1, 1, arrival(second, given));
const ran =
  (second: number, given: Partial<RunRow>) =>
  (history: History): void =>
    setRun(history, second, given);
const all =
  (...changes: ((history: History) => void)[]) =>
  (history: History): void => {
    for (const change of changes) change(history);
  };
const notSent = (second: number) => (history: History) => {
  history.arrivals = history.arrivals.filter(({ runId }) => runId !== `run-${second}`);
};
const again = ({ arrivals }: History): void => void arrivals.push(arrival(2, { attempt: 2, at: at(5) }));

const BROKEN: [Violation, string, (history: History) => void][] = [
  ['lost', 'a due moment without a run', ({ dump }) => void dump.runs.splice(1, 1)],
  [
    'lost',
    'a moment said to be folded into a run that was planned in time',
    (history) => {
      history.dump.runs.splice(1, 1);
      history.arrivals.splice(1, 1);
      setRun(history, 3, { coalesced: 1, coalescedFrom: at(2) });
    },
  ],
  ['phantom', 'a run at a moment that was not due', ({ dump }) => void dump.runs.push(run(4))],
  ['phantom', 'a run of a version that was not in force', ran(2, { scheduleVersion: 2 })],
  ['phantom', 'an arrival of no run', ({ arrivals }) => void arrivals.push(arrival(3, { runId: 'other' }))],
  ['phantom', 'an arrival before its run was recorded', ran(2, { createdAt: at(2) + 500 })],
  [
    'phantom',
    'an arrival long after its schedule was deleted',
    (history) => {
      history.edits.push({ ...deletion(), sentAt: at(4) - 5, endedAt: at(4) + 5 });
      const deleted = { version: 3, change: 'deleted', at: at(4), marker: 'm2' };
      history.dump.versions.push({ scheduleUid: 'u', scheduleId: 'canary', ...deleted });
      history.arrivals.splice(2, 1, arrival(3, { at: at(20) }));
    },
  ],
  ['early', 'an arrival before its time', arrives(1, { at: at(0.8) })],
  ['early', 'a run planned before its time', ran(2, { createdAt: at(1.9) })],
  ['plannedTwice', 'two runs for one moment', ({ dump }) => void dump.runs.push(run(2, { id: 'twin' }))],
  ['unexplainedRepeat', 'a second delivery after an acknowledged first one', all(ran(2, { attempts: 2 }), again)],
  [
    'unexplainedRepeat',
    'one that only a short cut would explain, which costs nobody its outcomes',
    all(ran(2, { attempts: 2 }), again, ({ disturbances }) => {
      disturbances.push({ kind: 'cut', instance: '1', from: at(2), to: at(2.5) });
    }),
  ],
  ['sameAttemptTwice', 'one attempt that came twice', ({ arrivals }) => void arrivals.push(arrival(2, { at: at(5) }))],
  [
    'sameAttemptTwice',
    'one attempt that another process sent again, and one that came three times',
    (history) => {
      const cut = arrival(2, { answer: 'lost', delivered: false });
      history.arrivals.splice(1, 1, cut, { ...cut, sender: '3.1' }, arrival(2, { at: at(5) }));
    },
  ],
  ['falseAccept', 'succeeded without an answer', ({ arrivals }) => void arrivals.splice(1, 1)],
  ['falseAccept', 'succeeded on an answer that was lost', arrives(2, { answer: 'lost', delivered: false })],
  [
    'missedAccept',
    'failed though it was acknowledged',
    ran(2, { status: 'failed', failures: 3, attempts: 3, handedOffAt: null }),
  ],
  [
    'arrivedLate',
    'an arrival after its attempt was over',
    (history) => {
      const attempt = { runId: 'run-2', attempt: 1, instanceId: 'i', outcome: 'unknown' };
      history.dump.attempts.push({ ...attempt, startedAt: at(2), finishedAt: at(3) });
      history.arrivals.splice(1, 1, arrival(2, { at: at(6) }));
    },
  ],
  ['wrongBody', 'a request that does not fit together', arrives(2, { fault: 'x' })],
  ['wrongBody', 'the payload of another version', arrives(2, { marker: 'm2' })],
  [
    'wrongEnd',
    'unknown, though it is to be delivered at least once',
    all(ran(2, { status: 'unknown', handedOffAt: null }), arrives(2, { answer: 'lost', delivered: false })),
  ],
  [
    'wrongEnd',
    'abandoned as deleted, and it never was',
    all(ran(2, { status: 'abandoned', reason: 'deleted', handedOffAt: null }), notSent(2)),
  ],
  [
    'stuck',
    'a run that is still open',
    all(ran(2, { status: 'pending', finishedAt: null, handedOffAt: null }), notSent(2)),
  ],
  [
    'stuck',
    'a fire-lock that outlived its time',
    ({ dump }) => Object.assign(dump.schedules[0] ?? {}, { lockedBy: 'i', lockedAt: at(1) }),
  ],
  [
    'stuck',
    'a dead instance that nobody declared dead',
    ({ dump }) => void dump.instances.push({ id: 'j', startedAt: at(0), heartbeatAt: at(1), diedAt: null }),
  ],
  ['conservation', 'more attempts delivered than counted', arrives(2, { attempt: 2 })],
  ['conservation', 'an end without its moment', ran(2, { finishedAt: null })],
  ['conservation', 'statistics that say something else', (history) => void (history.stats = { totalRuns: 2 })],
  ['edits', 'an acknowledged edit that is gone', ({ edits }) => void edits.push(editAt(10, 'm9'))],
  [
    'edits',
    'a version that nobody asked for',
    ({ edits }) => void edits.splice(1, 1, { ...editAt(3.5, 'm2'), outcome: 'refused' }),
  ],
  [
    'liveness',
    'an instance that is not ready',
    ({ instances }) => void instances.push({ name: '2', ready: false, ticking: false }),
  ],
  ['liveness', 'a silent canary', (history) => void (history.healedAt = at(30))],
  [
    'liveness',
    'a process that ended by itself',
    ({ disturbances }) => void disturbances.push({ kind: 'ended', instance: '1', from: at(1), to: at(1) }),
  ],
];

test.for(BROKEN)('%s: %s', ([violation, , change]) => {
  expect(violationsOf(changed(change))).toContain(violation);
});

test('an attempt may come twice where its kept connection ended before an answer, from the same process', () => {
  const history = changed(({ arrivals }) => {
    arrivals.splice(1, 1, arrival(2, { answer: 'lost', delivered: false }), arrival(2, { at: at(5) }));
  });
  expect(violationsOf(history)).toEqual([]);
});

test('atMostOnceRepeat: a second delivery under at most once, whatever happened to the sender', () => {
  const history = changed(
    (broken) => {
      setRun(broken, 2, { attempts: 2 });
      broken.arrivals.splice(1, 1, arrival(2, { answer: 'lost', delivered: false }));
      broken.arrivals.push(arrival(2, { attempt: 2, at: at(5) }));
      broken.disturbances.push({ kind: 'kill', instance: '1', from: at(2), to: at(3) });
    },
    { delivery: 'atMostOnce' },
  );
  expect(violationsOf(history)).toEqual(['atMostOnceRepeat']);
});

test('a second delivery is right, also under at most once, if the target answered that it did not take the first', () => {
  const history = changed(
    (repeated) => {
      setRun(repeated, 2, { attempts: 2, failures: 1 });
      repeated.arrivals.splice(1, 1, arrival(2, { answer: 'unavailable' }));
      repeated.arrivals.push(arrival(2, { attempt: 2, at: at(5) }));
    },
    { delivery: 'atMostOnce' },
  );
  expect(violationsOf(history)).toEqual([]);
});

test.for([
  ['its sender was killed', { kind: 'kill', instance: '1', from: at(2), to: at(3) }],
  ['the database was down', { kind: 'outage', instance: '*', from: at(1), to: at(12) }],
] as const)('a second delivery is explained where %s', ([, disturbance]) => {
  const history = changed((repeated) => {
    setRun(repeated, 2, { attempts: 2 });
    repeated.arrivals.push(arrival(2, { attempt: 2, at: at(8), sender: '2.1' }));
    repeated.disturbances.push(disturbance);
  });
  expect(check(history)).toMatchObject({ ok: true, repeats: { explained: 1, unexplained: 0 } });
});

test.for([
  ['in time', 900, 0, ['missedAccept']],
  ['in time, where the machine was busy', 900, 30, []],
  ['too late', 1_010, 0, []],
] as const)('an answer that came %s, of an attempt that was given up', ([, afterMs, busyMs, expected]) => {
  const history = changed((slow) => {
    setRun(slow, 2, { status: 'failed', failures: 3, attempts: 3, handedOffAt: null });
    const error = { kind: 'timeout' };
    const attempt = { runId: 'run-2', attempt: 1, instanceId: 'i', outcome: 'unknown', error };
    slow.dump.attempts.push({ ...attempt, startedAt: at(2) + 15, finishedAt: at(2) + 1_020 });
    slow.arrivals.splice(1, 1, arrival(2, { answer: 'slow', answeredAt: at(2) + 15 + afterMs }));
    if (busyMs > 0) slow.beats.push({ from: at(2) + 800, to: at(2) + 800 + busyMs, ms: busyMs });
  });
  expect(violationsOf(history)).toEqual(expected);
});

test('fires that were missed for longer than the grace may be folded into the newest', () => {
  const history = changed((late) => {
    for (const second of [1, 2]) {
      late.dump.runs = late.dump.runs.filter(({ id }) => id !== `run-${second}`);
      late.arrivals = late.arrivals.filter(({ runId }) => runId !== `run-${second}`);
    }
    late.dump.at = at(200);
    late.dump.instances = [];
    const planned = { createdAt: at(100), handedOffAt: at(101), finishedAt: at(101) };
    setRun(late, 3, { trigger: 'catchUp', coalesced: 2, coalescedFrom: at(1), ...planned });
    late.arrivals = [arrival(3, { at: at(100.5) })];
  });
  expect(violationsOf(history)).toEqual([]);
});

test('the oracle counts intervals from their anchor, whenever it is asked', () => {
  expect(intervals(500, 2, 500, 6_500)).toEqual([2_500, 4_500, 6_500]);
  expect(intervals(500, 2, 5_000, 5_500)).toEqual([]);
});

test('the checker finds every kind of violation', () => {
  const others =
    'commandTwice lease outlived runLog atMostOnceRepeat overlap limit catchUp effects alerts tables'.split(' ');
  const shown = new Set<string>([...BROKEN.map(([violation]) => violation), ...others]);
  expect(Object.keys(VIOLATIONS).filter((violation) => !shown.has(violation))).toEqual([]);
});

function editAt(seconds: number, marker: string): Edit {
  const definition = { ...DEFINITION, enabled: false };
  const times = { sentAt: at(seconds) - 5, endedAt: at(seconds) + 5 };
  return { scheduleId: 'canary', kind: 'put', marker, definition, ...times, outcome: 'acked' };
}

function deletion(): Edit {
  return { ...editAt(4, ''), kind: 'delete', marker: null, definition: null };
}

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
