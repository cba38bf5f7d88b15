import { expect, test } from 'vitest';
import {
  type DeliveredRun,
  type Evidence,
  type Faults,
  batchItemOf,
  check,
  dueMoments,
  makeSchedules,
  verdictLines,
} from '../../../src/cli/demo/verdict.ts';
import type { Timing } from '../../../src/core/timing/timing.ts';
import { fireTimes } from '../../../src/core/time/fire-times.ts';
import { firelock } from '../cli.ts';

const from = Date.UTC(2030, 0, 1);
const to = from + 20_000;
const schedules = makeSchedules(10);
/** What a schedule has that says nothing of it. */
const TIMING: Timing = {
  ...{
    cron: null,
    everySeconds: null,
    at: null,
    after: null,
    timezone: null,
    exclude: null,
    onExcluded: 'skip',
    every: null,
    pick: null,
  },
  ...{ startAt: null, endAt: null, jitterSeconds: 0 },
  ...{ catchUp: 'latest', catchUpLimit: 100, graceSeconds: 60 },
};
const every = 'demo-0001';
const TOLD = { stats: { lostRuns: 7, recoveredRuns: 7 }, killedInstances: 2, isDrained: true };

function delivery(scheduleId: string, second: number, over: Partial<DeliveredRun> = {}): DeliveredRun {
  const scheduledFor = from + second * 1000;
  const runId = over.runId ?? `${scheduleId}/${second}`;
  return { scheduleId, scheduledFor, runId, attempt: 1, key: runId, at: scheduledFor + 30, ...over };
}

/** What a faultless demo leaves. */
function faultless(): Evidence {
  const deliveries = schedules.flatMap((schedule) =>
    dueMoments(schedule, { from, to }).map((at) => delivery(schedule.id, (at - from) / 1000)),
  );
  return {
    ...{ schedules, from, to, senders: new Map(), kills: new Map() },
    deliveries: deliveries.sort((one, other) => one.at - other.at),
    stats: { openRuns: 0, failedRuns: 0, unknownRuns: 0, abandonedRuns: 0, cancelledRuns: 0 },
  };
}

/** Only the faults that were found. */
function faultsOf(evidence: Evidence): Partial<Faults> {
  const { ok, faults } = check(evidence);
  const found = Object.fromEntries(Object.entries(faults).filter(([, examples]) => examples.length > 0));
  expect(ok).toBe(Object.keys(found).length === 0);
  return found;
}

test('what is due by the demo’s own reckoning is what firelock fires', () => {
  const receiverUrl = 'http://127.0.0.1:9';
  for (const schedule of makeSchedules(100)) {
    const { startAt, endAt, ...definition } = batchItemOf(schedule, { from, to }, receiverUrl);
    const trigger = 'cron' in definition ? { cron: definition.cron } : { everySeconds: definition.everySeconds };
    const times = fireTimes(
      { ...TIMING, ...trigger, startAt: Date.parse(startAt), endAt: Date.parse(endAt) },
      { id: schedule.id, createdAt: from - 5_000 },
    );
    const fired: number[] = [];
    for (let at = times.next(from - 1); at !== null; at = times.next(at)) fired.push(at);
    expect(dueMoments(schedule, { from, to }), schedule.id).toEqual(fired);
  }
});

test('a faultless demo is found to be one, and counted', () => {
  const verdict = check(faultless());
  const due = schedules.reduce((sum, one) => sum + dueMoments(one, { from, to }).length, 0);
  expect(faultsOf(faultless())).toEqual({});
  expect(verdict).toMatchObject({ ok: true, due, delivered: due, repeatedAfterDeath: 0 });
  expect(verdictLines(verdict, TOLD).at(-1)).toBe('No fire was lost.');
});

test('a fire that did not arrive is missing, whatever else did', () => {
  const evidence = faultless();
  const deliveries = evidence.deliveries.filter(({ runId }) => runId !== `${every}/7`);
  const found = { missing: [`${every}@2030-01-01T00:00:07.000Z`] };
  expect(faultsOf({ ...evidence, deliveries })).toEqual(found);
  const verdict = check({ ...evidence, deliveries });
  const lines = verdictLines(verdict, TOLD);
  expect(lines).toContain('1 due, and not delivered:');
  expect(lines).toContain(`  ${found.missing[0] ?? ''}`);
  expect(lines).not.toContain('No fire was lost.');
});

test('a second delivery is a fault, unless its first sender was killed in between', () => {
  const evidence = faultless();
  const again = delivery(every, 7, { attempt: 2, at: from + 18_000 });
  const deliveries = [...evidence.deliveries, again];
  const senders = new Map([[again.runId, [{ attempt: 1, instanceId: 'victim' }]]]);
  const killed = (seconds: number) =>
    new Map([['victim', { from: from + seconds * 1000, to: from + seconds * 1000 + 5 }]]);
  const repeated = [`${every}@2030-01-01T00:00:07.000Z, attempts 1 and 2`];
  expect(check({ ...evidence, deliveries, senders, kills: killed(8) })).toMatchObject({
    ...{ ok: true, repeatedAfterDeath: 1 },
  });
  expect(faultsOf({ ...evidence, deliveries, senders })).toEqual({ repeated });
  expect(faultsOf({ ...evidence, deliveries, kills: killed(8) })).toEqual({ repeated });
  expect(faultsOf({ ...evidence, deliveries, senders, kills: killed(6) })).toEqual({ repeated });
  expect(faultsOf({ ...evidence, deliveries, senders, kills: killed(19) })).toEqual({ repeated });
  // Its request arrives after its death, and before that of the instance that took over.
  const late = deliveries.map((one) =>
    one.runId === again.runId && one !== again ? { ...one, at: from + 10_000 } : one,
  );
  const inOrder = late.toSorted((one, other) => one.at - other.at);
  expect(check({ ...evidence, deliveries: inOrder, senders, kills: killed(8) })).toMatchObject({
    ok: true,
    repeatedAfterDeath: 1,
  });
  const same = [...evidence.deliveries, { ...again, attempt: 1 }];
  expect(faultsOf({ ...evidence, deliveries: same, senders, kills: killed(8) })).toHaveProperty('repeated');
});

test('a fire that comes under another id, or with another key, is found', () => {
  const evidence = faultless();
  const other = delivery(every, 7, { runId: 'another', at: from + 18_000 });
  expect(faultsOf({ ...evidence, deliveries: [...evidence.deliveries, other] })).toEqual({
    otherId: [`${every}@2030-01-01T00:00:07.000Z: ${every}/7, then another`],
  });
  const deliveries = evidence.deliveries.map((one) => (one.runId === `${every}/7` ? { ...one, key: 'x' } : one));
  expect(faultsOf({ ...evidence, deliveries })).toEqual({ otherKey: [`${every}@2030-01-01T00:00:07.000Z`] });
});

test('a fire that no schedule asks for, or that comes before its moment, is found', () => {
  const evidence = faultless();
  const wrong = [delivery('unknown', 3), delivery(every, 20), delivery(every, 4.5)];
  expect(faultsOf({ ...evidence, deliveries: [...evidence.deliveries, ...wrong] })).toEqual({
    notDue: [
      'unknown@2030-01-01T00:00:03.000Z',
      `${every}@2030-01-01T00:00:20.000Z`,
      `${every}@2030-01-01T00:00:04.500Z`,
    ],
  });
  const deliveries = evidence.deliveries.map((one) =>
    one.runId === `${every}/7` ? { ...one, at: one.at - 300 } : one,
  );
  expect(faultsOf({ ...evidence, deliveries })).toEqual({ early: [`${every}@2030-01-01T00:00:07.000Z`] });
});

test('a run that is open in the end, or ended without success, is found', () => {
  const evidence = faultless();
  expect(faultsOf({ ...evidence, stats: { ...evidence.stats, openRuns: 2, abandonedRuns: 1 } })).toEqual({
    unfinished: ['2 open', '1 abandoned'],
  });
});

test('options that cannot be are named, all at once, and nothing is started', async () => {
  const args = ['demo', '--seconds', '9', '--schedules', 'many', '--kill-every', '20'];
  expect(await firelock(args)).toMatchObject({
    code: 64,
    out: '',
    err:
      'firelock: --seconds is 9; expected: a whole number from 10 to 3600\n' +
      'firelock: --schedules is many; expected: a whole number from 10 to 2000\n' +
      'firelock: --kill-every 20 kills no instance within --seconds 9\n',
  });
});
