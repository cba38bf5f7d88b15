// @module-tag long
import { expect, test } from 'vitest';
import { eachTest, databaseOfTest, receiverOfTest, sqlOfTest } from '../../support/of-test.ts';
import { type Daemon, readyDaemon } from '../../support/daemon.ts';
import { type RunRow, EVERY_SECOND, endedRuns } from '../../support/fires.ts';
import { until } from '../../support/until.ts';

const VARIABLES = {
  FIRELOCK_TICK_INTERVAL_MS: '100',
  FIRELOCK_INSTANCE_TTL_SECONDS: '4',
  FIRELOCK_HEARTBEAT_INTERVAL_SECONDS: '1',
  FIRELOCK_RECOVERY_INTERVAL_SECONDS: '1',
};
const OVERLAPS = ['allow', 'skip', 'queue', 'replace'];
const HOUR = 3_600_000;

const database = eachTest(databaseOfTest);
const receiver = eachTest(receiverOfTest);
const sql = eachTest(() => sqlOfTest(database.url));

/** Asks one of the daemons to skip the fire of a second to come; answers whether it did. */
async function skip(daemon: Daemon, id: string, fireAt: number): Promise<boolean> {
  const path = `/api/v1/schedules/${id}/skip`;
  const answer = await daemon.call('POST', path, { fireAt: new Date(fireAt).toISOString() });
  // The second may have come meanwhile.
  expect([200, 409]).toContain(answer.status);
  return answer.status === 200;
}

const secondNow = async () =>
  Math.floor(Number((await sql<{ now: Date }[]>`SELECT clock_timestamp() AS now`)[0]?.now) / 1000) * 1000;

test('a skip that one daemon accepted holds for the other, though one is killed in between, and after both were down', async () => {
  const start = () => readyDaemon(database.url, VARIABLES);
  let [first, second] = await Promise.all([start(), start()]);
  const items = OVERLAPS.map((overlap) => ({
    id: overlap,
    cron: EVERY_SECOND,
    overlap,
    catchUp: 'all',
    catchUpLimit: 1000,
    target: { type: 'http', url: receiver.url },
  }));
  expect((await first.call('POST', '/api/v1/schedules/batch', { items })).status).toBe(200);
  const asked = new Map(OVERLAPS.map((id) => [id, new Set<number>()]));
  const skipAhead = async (daemon: Daemon, ahead: readonly number[]) => {
    const now = await secondNow();
    for (const seconds of ahead)
      for (const id of OVERLAPS)
        if (await skip(daemon, id, now + seconds * 1000)) asked.get(id)?.add(now + seconds * 1000);
  };
  for (let round = 0; round < 3; round += 1) {
    await skipAhead(round % 2 === 0 ? first : second, [1, 3]);
    const now = await secondNow();
    await until(async () => ((await secondNow()) > now ? true : null));
  }
  await skipAhead(first, [1, 2, 6]);
  second.signal('SIGKILL');
  await second.exited;
  await skipAhead(first, [2, 4, 8]);
  first.signal('SIGKILL');
  await first.exited;
  const down = await secondNow();
  await until(async () => ((await secondNow()) > down + 5000 ? true : null));
  [first, second] = await Promise.all([start(), start()]);
  const last = Math.max(...[...asked.values()].flatMap((fires) => [...fires]));
  await until(async () => ((await secondNow()) > last + 1000 ? true : null));
  for (const id of OVERLAPS)
    expect((await second.call('PATCH', `/api/v1/schedules/${id}`, { enabled: false })).status).toBe(200);
  const runs = await endedRuns(sql);

  const sent = new Set(receiver.arrivals.map(({ body }) => body.runId));
  for (const id of OVERLAPS) {
    const own = runs.filter((run: RunRow & { reason?: string | null }) => run.schedule_id === id);
    const [beginning = NaN, ...rest] = own.map((run) => Number(run.scheduled_for));
    // Each second has one run, nothing is folded, and those that were asked for are skipped, and no others.
    expect(rest).toEqual(rest.map((_, index) => beginning + (index + 1) * 1000));
    expect(own.filter(({ coalesced }) => coalesced > 0)).toEqual([]);
    const onRequest = await sql<{ at: Date; id: string }[]>`
      SELECT scheduled_for AS at, id FROM history WHERE schedule_id = ${id} AND reason = 'request' ORDER BY at`;
    expect(onRequest.map(({ at }) => Number(at))).toEqual([...(asked.get(id) ?? [])].sort((a, b) => a - b));
    expect(onRequest.filter((run) => sent.has(run.id))).toEqual([]);
    const path = `/api/v1/schedules/${id}/occurrences`;
    const period = `from=${new Date(beginning).toISOString()}&to=${new Date(beginning + HOUR).toISOString()}`;
    const { body } = await first.call('GET', `${path}?${period}&limit=500`);
    const skipped = (body as { items: { fireAt: string; reason?: string }[] }).items.filter(
      ({ reason }) => reason === 'request',
    );
    expect(skipped.map(({ fireAt }) => Date.parse(fireAt))).toEqual(onRequest.map(({ at }) => Number(at)));
  }
  expect(await sql`SELECT FROM skips`).toHaveLength(0);
  expect(await sql`SELECT FROM schedules WHERE has_skips`).toHaveLength(0);
});
