import { afterAll, beforeAll, expect, test } from 'vitest';
import postgres from 'postgres';
import { createGaugeSampler } from '../../src/observability/gauge-sampler.ts';
import { createMetrics } from '../../src/observability/metrics.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { createEventBus } from '../../src/runtime/event-bus.ts';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { createOpenSpan } from '../../src/store/open-runs.ts';
import { type TestDatabase, createMigrated } from '../support/cluster.ts';
import { until } from '../support/until.ts';

let own: TestDatabase;
let database: Database;
let sql: postgres.Sql;
beforeAll(async () => {
  own = await createMigrated();
  database = openDatabase(own.url, 1);
  sql = postgres(own.url, { max: 1, onnotice: () => undefined });
});
afterAll(async () => {
  await sql.end();
  await database.close();
  await own.drop();
});

test('a sample that fails keeps no other from its turn, and is taken again when it can be', async () => {
  await sql`ALTER TABLE schedules RENAME TO gone`;
  const events = createEventBus();
  const metrics = createMetrics({
    clock: systemClock,
    events,
    version: '0',
    zoneData: 'a',
    inFlight: () => 0,
    leaseValid: () => true,
  });
  const sampler = createGaugeSampler({
    database,
    clock: systemClock,
    events,
    openSpan: createOpenSpan(database),
    metrics,
    tickIntervalMs: 1_000,
  });
  const sampled = async (kind: string) =>
    (await metrics.text()).includes(`firelock_sampled_timestamp_seconds{gauges="${kind}"}`) || null;
  let failed = 0;
  events.subscribe(({ type }) => (failed += type === 'loopFailed' ? 1 : 0));
  await sampler.start();
  try {
    await until(() => sampled('runs_open'));
    await until(() => failed > 0 || null);
    expect([await sampled('work'), await sampled('schedules')]).toEqual([null, null]);
    await sql`ALTER TABLE gone RENAME TO schedules`;
    await until(async () => (await sampled('work')) && (await sampled('schedules')));
  } finally {
    await sampler.stop();
  }
});
