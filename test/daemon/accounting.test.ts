// @module-tag long
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { eachTest, databaseOfTest, receiverOfTest } from '../support/of-test.ts';
import { type Daemon, readyDaemon } from '../support/daemon.ts';
import { until } from '../support/until.ts';

interface Occurrence {
  fireAt: string;
  state: string;
  reason?: string;
  runId?: string;
}

interface Run {
  id: string;
  scheduledFor: string;
  trigger: string;
  status: string;
  reason: string | null;
  coalesced: number;
  coalescedFrom: string | null;
}

interface Page<Item> {
  items: Item[];
  nextCursor: string | null;
}

const VARIABLES = {
  FIRELOCK_TICK_INTERVAL_MS: '200',
  FIRELOCK_INSTANCE_TTL_SECONDS: '4',
  FIRELOCK_HEARTBEAT_INTERVAL_SECONDS: '1',
  FIRELOCK_RECOVERY_INTERVAL_SECONDS: '1',
  FIRELOCK_SHUTDOWN_SECONDS: '2',
};
const OVERLAPS = ['allow', 'skip', 'queue', 'replace'];
const CATCH_UPS = ['skip', 'latest', 'all'];

const database = eachTest(databaseOfTest);
// Some are slower than their schedule.
const receiver = eachTest(() =>
  receiverOfTest(({ path }, response) => {
    setTimeout(() => response.end('{}'), path.startsWith('/slow') ? 1300 : 0);
  }),
);

test('every moment of every schedule is accounted for, after two daemons were killed in turn, both were down, and schedules were edited meanwhile', async () => {
  const start = () => readyDaemon(database.url, VARIABLES);
  let [first, second] = await Promise.all([start(), start()]);
  const schedules = OVERLAPS.flatMap((overlap, index) =>
    CATCH_UPS.map((catchUp, other) => ({
      id: `${overlap}-${catchUp}`,
      ...(index % 2 === 1 ? { everySeconds: 1 } : { cron: '* * * * * *' }),
      overlap,
      catchUp,
      catchUpLimit: 2,
      graceSeconds: 1,
      jitterSeconds: other === 1 ? 1 : 0,
      target: { type: 'http', url: `${receiver.url}/${index === 0 ? 'quick' : 'slow'}` },
      timeoutSeconds: 5,
      retry: { maxAttempts: 100, minBackoffSeconds: 0.1, maxBackoffSeconds: 0.5 },
    })),
  );
  expect((await first.call('POST', '/api/v1/schedules/batch', { items: schedules })).status).toBe(200);
  await sleep(2000);
  first.signal('SIGKILL');
  await first.exited;
  await sleep(1500);
  const edited = await second.call('PATCH', '/api/v1/schedules/allow-latest', { cron: '*/2 * * * * *' });
  expect(edited.status).toBe(200);
  second.signal('SIGKILL');
  await second.exited;
  await sleep(5000);
  [first, second] = await Promise.all([start(), start()]);
  for (const enabled of [false, true]) {
    expect((await first.call('PATCH', '/api/v1/schedules/skip-latest', { enabled })).status).toBe(200);
    // Longer than a second and a delay: one at least is over before the schedule goes on.
    await sleep(2200);
  }
  second.signal('SIGKILL');
  await second.exited;
  await sleep(1000);
  for (const { id } of schedules) {
    expect((await first.call('PATCH', `/api/v1/schedules/${id}`, { enabled: false })).status).toBe(200);
  }
  const open = ['waiting', 'pending', 'running'].join(',');
  await until(async () => ((await page<Run>(first, `/runs?status=${open}`)).items.length === 0 ? true : null));

  const seen = new Set<string>();
  for (const { id } of schedules) {
    const { states } = await expectAccountedFor(first, id);
    for (const state of states) seen.add(state);
  }
  // All that can become of a fire has become of some.
  for (const state of ['fired', 'paused', 'skipped overlap', 'missed skip', 'missed latest', 'missed limit']) {
    expect([...seen]).toContain(state);
  }
  first.signal('SIGTERM');
  await first.exited;
});

/** Each second (of one version each other second) since the creation is there once, and tells what its run tells. */
async function expectAccountedFor(daemon: Daemon, id: string): Promise<{ states: string[] }> {
  const { createdAt, updatedAt } = (await daemon.call('GET', `/api/v1/schedules/${id}`)).body as Record<string, string>;
  const period = `from=${createdAt}&to=${updatedAt}`;
  const occurrences = await all<Occurrence>(daemon, `/schedules/${id}/occurrences?${period}`);
  const runs = await all<Run>(daemon, `/schedules/${id}/runs?from=${createdAt}`);
  const byId = new Map(runs.map((run) => [run.id, run]));

  const moments = occurrences.map(({ fireAt }) => Date.parse(fireAt));
  const gaps = moments.slice(1).map((at, index) => at - (moments[index] ?? 0));
  const steps = id === 'allow-latest' ? [1000, 2000] : [1000];
  for (const gap of gaps) expect(steps).toContain(gap);
  expect((moments[0] ?? Infinity) - Date.parse(createdAt ?? '')).toBeLessThanOrEqual(1000);
  expect(Date.parse(updatedAt ?? '') - (moments.at(-1) ?? 0)).toBeLessThanOrEqual(2000);

  const states = occurrences.map(({ state, reason }) => (reason === undefined ? state : `${state} ${reason}`));
  for (const [index, { fireAt, state, runId }] of occurrences.entries()) {
    const run = byId.get(runId ?? '');
    const what = { id, fireAt, listed: states[index] };
    if (state === 'paused') expect({ ...what, runId }).toEqual({ ...what, runId: undefined });
    else if (state === 'fired') expect({ ...what, run: run?.scheduledFor }).toEqual({ ...what, run: fireAt });
    else if (state === 'skipped') expect({ ...what, reason: run?.reason }).toEqual({ ...what, reason: 'overlap' });
    else {
      expect({ ...what, state }).toEqual({ ...what, state: 'missed' });
      expect(Date.parse(run?.coalescedFrom ?? run?.scheduledFor ?? '')).toBeLessThanOrEqual(Date.parse(fireAt));
      expect(Date.parse(run?.scheduledFor ?? '')).toBeGreaterThanOrEqual(Date.parse(fireAt));
    }
  }
  // The other way round: each run is one of the occurrences, and what it says it stands for is what it stands for.
  const planned = runs.filter(({ trigger }) => trigger !== 'manual');
  for (const run of planned) {
    const missed = occurrences.filter(({ runId, fireAt }) => runId === run.id && fireAt !== run.scheduledFor);
    expect({ id, run: run.id, coalesced: run.coalesced }).toEqual({
      id,
      run: run.id,
      coalesced: missed.length,
    });
  }
  expect(new Set(planned.map(({ scheduledFor }) => scheduledFor)).size).toBe(planned.length);
  return { states };
}

async function page<Item>(daemon: Daemon, path: string): Promise<Page<Item>> {
  const answer = await daemon.call('GET', `/api/v1${path}`);
  expect(answer.status).toBe(200);
  return answer.body as Page<Item>;
}

async function all<Item>(daemon: Daemon, path: string): Promise<Item[]> {
  const items: Item[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const next: Page<Item> = await page(daemon, `${path}&limit=50${cursor === '' ? '' : `&cursor=${cursor}`}`);
    items.push(...next.items);
    cursor = next.nextCursor;
  }
  return items;
}
