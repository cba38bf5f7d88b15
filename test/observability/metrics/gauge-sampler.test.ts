import { afterAll, beforeAll, expect, test } from 'vitest';
import postgres from 'postgres';
import { createGaugeSampler } from '../../../src/observability/metrics/gauge-sampler.ts';
import { type Clock, systemClock } from '../../../src/runtime/clock.ts';
import { createEventBus } from '../../../src/runtime/event-bus.ts';
import { type Database, openDatabase } from '../../../src/postgres/database.ts';
import { passingClock } from '../../support/clocks.ts';
import type { TestDatabase } from '../../support/postgres/cluster.ts';
import { createMigratedDatabase } from '../../support/postgres/migrated-database.ts';
import { until } from '../../support/until.ts';
import { SECRETS } from '../../support/secrets.ts';
import { metricsOf } from '../../support/working.ts';

let own: TestDatabase;
let database: Database;
let sql: postgres.Sql;
beforeAll(async () => {
  own = await createMigratedDatabase();
  database = openDatabase(own.url, 1);
  sql = postgres(own.url, { max: 1, onnotice: () => undefined });
});
afterAll(async () => {
  await sql.end();
  await database.close();
  await own.drop();
});

function sampling(on: Database, clock: Clock = systemClock) {
  const events = createEventBus();
  const metrics = metricsOf(events, clock);
  const sampler = createGaugeSampler({
    database: on,
    clock,
    events,
    metrics,
    secrets: SECRETS,
    tickIntervalMs: 1_000,
  });
  return { sampler, events, metrics };
}

test('a sample that fails does not stop the others, and is taken again when possible', async () => {
  await sql`ALTER TABLE schedules RENAME TO gone`;
  const { sampler, events, metrics } = sampling(database);
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

test('samples that take their full time do not add up in one pass: the watchdog would take it for one that hangs', async () => {
  const { clock, pass } = passingClock();
  const inPasses: number[] = [];
  const slow: Database = {
    ...database,
    run: () => {
      inPasses.push(sampler.passes());
      // For a connection, and for the answer.
      pass(60_000);
      return Promise.reject(new Error('too slow'));
    },
  };
  const { sampler } = sampling(slow, clock);
  await sampler.start();
  await until(() => inPasses.length >= 3 || null);
  await sampler.stop();
  expect(new Set(inPasses.slice(0, 3)).size).toBe(3);
});
