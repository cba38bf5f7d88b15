// @module-tag long
import postgres from 'postgres';
import { expect, it, onTestFinished } from 'vitest';
import { runPage } from '../../docs/shell.ts';
import { createMigratedDatabase } from '../../support/postgres/migrated-database.ts';
import { type Daemon, readyDaemon } from '../../support/daemon.ts';
import { startReceiver } from '../../support/receiver.ts';
import { until } from '../../support/until.ts';

const HOUR = 3_600_000;
/** The defaults, scaled down. */
const SCALED = { FIRELOCK_HEARTBEAT_INTERVAL_SECONDS: '1', FIRELOCK_INSTANCE_TTL_SECONDS: '4' };
const iso = (at: number) => new Date(at).toISOString();

interface Version {
  version: number;
  by: string | null;
  at: string;
}
interface Listed<T> {
  items: T[];
}
const get = async (daemon: Daemon, path: string) => (await daemon.call('GET', `/api/v1${path}`)).body;
const schedule = (daemon: Daemon, id: string) => get(daemon, `/schedules/${id}`) as Promise<Record<string, unknown>>;
const versions = async (daemon: Daemon, id: string) =>
  ((await get(daemon, `/schedules/${id}/versions`)) as Listed<Version>).items;

it('a pause ends to the second, failures pause once, and lateness is reported once, though an instance is killed', async () => {
  const database = await createMigratedDatabase();
  onTestFinished(() => database.drop());
  const sql = postgres(database.url, { max: 1, onnotice: () => undefined });
  onTestFinished(() => sql.end());
  const receiver = await startReceiver(({ path }, response) => {
    response.statusCode = path === '/failing' ? 400 : 200;
    response.end('{}');
  });
  onTestFinished(() => receiver.close());
  const [killed, left] = await Promise.all([readyDaemon(database.url, SCALED), readyDaemon(database.url, SCALED)]);
  const put = async (id: string, more: object) => {
    const target = { type: 'http', url: `${receiver.url}/${id}` };
    const answer = await left.call('PUT', `/api/v1/schedules/${id}`, {
      target,
      cron: '* * * * * *',
      ...more,
    });
    expect(answer.status).toBe(201);
  };

  await put('report', { cron: '@yearly' });
  await runPage('docs/maintenance.md', { url: left.url, targetUrl: receiver.url });
  expect(await schedule(left, 'report')).toMatchObject({
    status: 'paused',
    pauseUntil: '2099-01-04T08:00:00.000Z',
    pauseAfterFailures: 3,
  });
  await runPage('docs/alerts.md', { url: left.url, targetUrl: receiver.url });
  expect(await schedule(left, 'backup')).toMatchObject({ successWithinSeconds: 93_600, late: false });

  const pauseUntil = Math.ceil(Date.now() / 1000) * 1000 + 2000;
  await put('paused', { enabled: false, pauseUntil: iso(pauseUntil) });
  await put('failing', { pauseAfterFailures: 2 });
  const since = Math.floor(Date.now() / 1000) * 1000 - 48 * HOUR;
  await sql`UPDATE outcome_watches w SET success_since = ${iso(since)}, look_at = clock_timestamp()
    FROM schedules s WHERE s.uid = w.schedule_uid AND s.id = 'backup'`;
  killed.signal('SIGKILL');

  const alarm = await until(() => receiver.arrivals.find(({ path }) => path === '/alarm') ?? null);
  expect(alarm.body).toMatchObject({ scheduleId: 'backup-is-late', scheduledFor: iso(since + 26 * HOUR) });
  expect(await schedule(left, 'backup')).toMatchObject({ late: true });
  const paused = await until(async () => {
    const found = await schedule(left, 'failing');
    return found['status'] === 'paused' ? found : null;
  });
  expect(paused['pauseReason']).toMatch(/^2 runs in a row did not succeed/);
  expect(await versions(left, 'failing')).toMatchObject([{ by: 'firelock' }, { by: null }]);

  const resumed = await until(async () => {
    const found = await versions(left, 'paused');
    return found.length > 1 ? found : null;
  });
  expect(resumed).toMatchObject([{ version: 2, by: 'firelock', at: iso(pauseUntil - 1) }, { version: 1 }]);
  const first = await until(() => receiver.arrivals.find(({ path }) => path === '/paused') ?? null);
  expect(first.body).toMatchObject({ scheduledFor: iso(pauseUntil), trigger: 'schedule' });
  expect(receiver.arrivals.filter(({ path }) => path === '/alarm')).toHaveLength(1);
});
