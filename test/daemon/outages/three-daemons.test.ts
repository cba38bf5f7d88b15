// @module-tag long
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { eachTest, databaseOfTest, receiverOfTest, sqlOfTest } from '../../support/of-test.ts';
import { type Daemon, readyDaemon } from '../../support/daemon.ts';
import { until } from '../../support/until.ts';

interface Fire {
  scheduleId: string;
  scheduledFor: string;
}

interface Schedule {
  id: string;
  cron: string;
  createdAt: string;
  updatedAt: string;
  enabled: boolean;
}

interface Run extends Fire {
  id: string;
  status: string;
  trigger: string;
  coalesced: number;
  failures: number;
}

interface Page<Item> {
  items: Item[];
  nextCursor: string | null;
}

const EVERY_SECOND = '* * * * * *';
const EVERY_OTHER_SECOND = '*/2 * * * * *';
const PERIOD_MS: Record<string, number> = { [EVERY_SECOND]: 1000, [EVERY_OTHER_SECOND]: 2000 };

const database = eachTest(databaseOfTest);
const receiver = eachTest(receiverOfTest);
const sql = eachTest(() => sqlOfTest(database.url));

test('three daemons fire every due moment exactly once while one leaves for another and one restarts', async () => {
  const [first, second, third] = await Promise.all([start(), start(), start()]);
  await putAll(first, true);

  await sleep(7_000);
  const stopped = first.exited;
  first.signal('SIGTERM');
  const fourth = await start();
  expect(await stopped).toBe(0);
  await sleep(7_000);
  second.signal('SIGTERM');
  expect(await second.exited).toBe(0);
  const again = await start({ PORT: String(second.port) });
  await sleep(12_000);

  await putAll(third, false);
  const schedules = await pages<Schedule>(again, '/api/v1/schedules');
  expect(schedules).toHaveLength(300);
  expect(schedules.filter(({ enabled }) => enabled)).toEqual([]);
  const expected = schedules.flatMap(firesOf);
  const perSchedule = expected.length / schedules.length;
  expect(perSchedule).toBeGreaterThan(15);
  await until(async () => (await open()) === 0 || null);

  const recorded = await sql<Run[]>`
      SELECT id, schedule_id AS "scheduleId", scheduled_for AS "scheduledFor", status, trigger, coalesced, failures
      FROM all_runs`;
  const rows = recorded.map((row) => ({ ...row, scheduledFor: new Date(row.scheduledFor).toISOString() }));
  const runs = await pages<Run>(fourth, '/api/v1/runs');
  const arrivals = receiver.arrivals.map(({ body }) => body);
  const names = expected.map(nameOf).sort();
  expect(rows.map(nameOf).sort()).toEqual(names);
  expect(runs.map(nameOf).sort()).toEqual(names);
  expect(arrivals.map(nameOf).sort()).toEqual(names);

  const ids = rows.map(({ id }) => id).sort();
  expect(new Set(ids).size).toBe(names.length);
  expect(runs.map(({ id }) => id).sort()).toEqual(ids);
  expect(arrivals.map(({ runId }) => runId).sort()).toEqual(ids);
  const plain = { status: 'succeeded', trigger: 'schedule', coalesced: 0, failures: 0 };
  for (const { status, trigger, coalesced, failures } of [...rows, ...runs]) {
    expect({ status, trigger, coalesced, failures }).toEqual(plain);
  }

  const daemons = [third, fourth, again];
  for (const daemon of daemons) daemon.signal('SIGTERM');
  expect(await Promise.all(daemons.map(({ exited }) => exited))).toEqual([0, 0, 0]);
  for (const daemon of [first, second, ...daemons]) {
    expect(daemon.log().filter(({ level }) => level >= 50)).toEqual([]);
  }
});

const start = (variables = {}): Promise<Daemon> => readyDaemon(database.url, variables);

async function putAll(daemon: Daemon, enabled: boolean): Promise<void> {
  const items = Array.from({ length: 300 }, (_, index) => ({
    id: `s${index}`,
    cron: index % 2 === 0 ? EVERY_SECOND : EVERY_OTHER_SECOND,
    target: { type: 'http', url: `${receiver.url}/${index}` },
    enabled,
  }));
  const answer = await daemon.call('POST', '/api/v1/schedules/batch', { items });
  expect(answer).toMatchObject({ status: 200, body: { [enabled ? 'created' : 'updated']: 300 } });
}

/** By the definition alone: every whole or even second after its creation, up to the moment of its pause. */
function firesOf({ id, cron, createdAt, updatedAt }: Schedule): Fire[] {
  const period = PERIOD_MS[cron] ?? NaN;
  const fires: Fire[] = [];
  let at = (Math.floor(Date.parse(createdAt) / period) + 1) * period;
  for (; at <= Date.parse(updatedAt); at += period) {
    fires.push({ scheduleId: id, scheduledFor: new Date(at).toISOString() });
  }
  return fires;
}

function nameOf({ scheduleId, scheduledFor }: Fire): string {
  return `${scheduleId}@${scheduledFor}`;
}

async function open(): Promise<number> {
  const [row] = await sql<{ count: number }[]>`SELECT count(*)::int FROM all_runs WHERE status = 'pending'`;
  return row?.count ?? NaN;
}

async function pages<Item>(daemon: Daemon, path: string): Promise<Item[]> {
  const items: Item[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const query: string = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const { status, body } = await daemon.call('GET', `${path}?limit=500${query}`);
    expect(status).toBe(200);
    const page = body as Page<Item>;
    items.push(...page.items);
    cursor = page.nextCursor;
  }
  return items;
}
