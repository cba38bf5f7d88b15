// @module-tag long
import { expect, it } from 'vitest';
import { eachTest, databaseOfTest, receiverOfTest, sqlOfTest } from '../../support/of-test.ts';
import { daemonHere } from '../../support/daemon-here.ts';
import { readyDaemon } from '../../support/daemon.ts';
import type { AnyDaemon } from '../../support/programs.ts';
import { LONG } from '../../support/runner/long.ts';
import { until } from '../../support/until.ts';

const USERS = 10_000;
const DAY = 86_400_000;

const database = eachTest(databaseOfTest);
const sql = eachTest(() => sqlOfTest(database.url, 2));
const receiver = eachTest(receiverOfTest);

/** Copies of one schedule, as if each had been written by itself. */
async function copy(id: string): Promise<void> {
  await sql.begin(async (tx) => {
    await tx`CREATE TEMP TABLE copies ON COMMIT DROP AS SELECT gen_random_uuid() AS uid, ${id} || '-' || n AS id FROM generate_series(2, ${USERS}::int) AS n`;
    await tx`INSERT INTO schedules (uid, id, version, enabled, timing, zoned, overlap, lane, priority, next_occurrence_at, next_fire_at,
      created_at, updated_at)
    SELECT c.uid, c.id, version, enabled, timing, zoned, overlap, lane, priority, next_occurrence_at, next_fire_at, created_at, updated_at
    FROM copies c, schedules s WHERE s.id = ${id}`;
    await tx`INSERT INTO schedule_versions (schedule_uid, version, schedule_id, change, at, definition)
    SELECT c.uid, v.version, c.id, v.change, v.at, v.definition FROM copies c, schedule_versions v WHERE v.schedule_id = ${id}`;
    await tx`INSERT INTO schedule_calendars (calendar_id, schedule_uid) SELECT 'holidays', uid FROM copies`;
  });
}

it(
  'an edit reaches all ten thousand schedules that exclude a calendar, though its instance is killed in the middle; fires go on',
  { tags: [LONG] },
  async () => {
    const [first, second] = await Promise.all([readyDaemon(database.url), daemonHere(database.url)]);
    const put = (daemon: AnyDaemon, path: string, body: object) => daemon.call('PUT', `/api/v1/${path}`, body);
    await put(first, 'calendars/holidays', { dates: [] });
    const target = { type: 'http', url: receiver.url };
    const tomorrow = new Date(Date.now() + DAY).toISOString().slice(0, 10);
    const exclude = { calendars: ['holidays'] };
    await put(first, 'schedules/user', {
      cron: '0 12 * * *',
      startAt: `${tomorrow}T00:00:00Z`,
      target,
      exclude,
    });
    await copy('user');
    await put(first, 'schedules/often', { everySeconds: 1, target });
    await receiver.arrived(1);
    const next = Date.parse(`${tomorrow}T12:00:00Z`) + DAY;
    const moved = async () => {
      const [row] = await sql<{ count: number }[]>`
      SELECT count(*)::int AS count FROM schedules WHERE next_fire_at = ${new Date(next)} AND next_occurrence_at = ${new Date(next)}`;
      return row?.count ?? 0;
    };
    // One user is in use as long as this holds it: until then nobody can be done.
    const held = await sql.reserve();
    await held`BEGIN`;
    await held`SELECT FROM schedules WHERE id = ${`user-${USERS}`} FOR UPDATE`;
    const editing = put(first, 'calendars/holidays', { dates: [tomorrow] }).catch(() => null);
    await until(async () => ((await moved()) > 0 ? true : null));
    first.signal('SIGKILL');
    // On a slow machine it may have answered that the rest follows.
    expect((await editing)?.body ?? null).toSatisfy(
      (body: { nextFiresMoved: boolean } | null) => body?.nextFiresMoved !== true,
    );
    expect(await moved()).toBeLessThan(USERS);
    const unapplied = () => sql`SELECT FROM calendars WHERE applied_version < version`;
    expect(await unapplied()).toHaveLength(1);
    await held`ROLLBACK`;
    held.release();
    await until(async () => ((await unapplied()).length === 0 ? true : null));
    expect(await moved()).toBe(USERS);
    // It goes on where the first one said last how far it was, and counts from there.
    const said = await second.logged(/^the next fires of all schedules that exclude this calendar/);
    expect(said).toMatchObject({ calendarId: 'holidays', version: 2 });
    expect(said['schedules']).toBeLessThanOrEqual(USERS);
    const fires = await sql<{ at: Date }[]>`
    SELECT scheduled_for AS at FROM all_runs WHERE schedule_id = 'often' AND trigger = 'schedule' ORDER BY scheduled_for`;
    const steps = fires.slice(1).map(({ at }, index) => at.getTime() - (fires[index]?.at.getTime() ?? 0));
    expect(steps.length).toBeGreaterThan(0);
    expect(new Set(steps)).toEqual(new Set([1000]));
  },
);
