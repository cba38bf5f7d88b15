// @module-tag attack
// @module-tag long
import { sql } from 'drizzle-orm';
import { beforeEach, describe, expect, it } from 'vitest';
import { putNotifier } from '../../support/notifiers.ts';
import { FAR } from '../../support/of-test.ts';
import { createInstance } from '../../support/pipeline.ts';
import { until } from '../../support/until.ts';
import { PULLED, leaveEffects, leaveReminders, leaveUndelivered, putSchedules } from '../../volume/leave.ts';
import { type Volume, volumeOfTest } from '../../volume/volume.ts';

let volume: Volume;

beforeEach(async () => {
  volume = await volumeOfTest(FAR);
});

const count = async (statement: Parameters<Volume['store']['rows']>[0]) =>
  (await volume.store.rows<{ count: number }>(statement))[0]?.count ?? 0;
const effects = () => count(sql`SELECT count(*)::int FROM effects`);
const pager = (id = 'pager', more = {}) => putNotifier(volume.store, { id, url: '', channel: 'pagerduty', ...more });
const breakAll = () => leaveEffects(volume, 'breaks', { alertKind: 'failed' });
type Looping = 'effects' | 'alertEffects' | 'begunEffects' | 'alertWatch';
/** Lets these loops of an instance, which lives no longer, work until that is so. */
async function work(loops: readonly Looping[], isDone: () => Promise<boolean>): Promise<void> {
  const instance = await createInstance(volume.store);
  for (const loop of loops) await instance.pipeline[loop].start();
  await until(async () => (await isDone()) || null);
  await instance.stop();
}
const untilNone = async () => (await effects()) === 0;
const mostPerTransaction = () =>
  count(
    sql`SELECT max(of)::int AS count FROM (SELECT count(*) AS of FROM messages WHERE NOT passed_on GROUP BY xmin) AS t`,
  );

describe('messages for PagerDuty', () => {
  it('are one for each episode, and have their text at once: no other loop has to close them', async () => {
    await putSchedules(volume, 3);
    await pager();
    await breakAll();
    await work(['alertEffects'], untilNone);
    // They are under way: what they tell may have arrived.
    await volume.store.rows(sql`UPDATE runs SET claimed_by = gen_random_uuid(), claimed_at = now()`);
    await volume.store.rows(sql`UPDATE alerts SET broken_at = broken_at - interval '1 minute'`);
    await leaveEffects(volume, 'heals', { alertKind: 'failed' });
    await work(['alertEffects'], untilNone);
    const rows = await volume.store.rows<{
      event: string;
      payload: string;
      told: string;
      until: string | null;
    }>(
      sql`SELECT m.event, r.own_payload AS payload, a.alert_id AS told, e.until FROM messages m
        JOIN runs r ON r.id = m.run_id AND r.lane = 'notify '
          AND r.status = CASE m.event WHEN 'opened' THEN 'pending' ELSE 'waiting' END
        JOIN message_alerts a ON a.run_id = m.run_id JOIN alerts e ON e.id = a.alert_id
        WHERE m.gathers_until IS NULL ORDER BY m.created_at, r.id`,
    );
    expect(rows.map(({ event }) => event)).toEqual([
      ...new Array<string>(3).fill('opened'),
      ...new Array<string>(3).fill('recovered'),
    ]);
    for (const { event, payload, told } of rows) {
      const sent = JSON.parse(payload) as Record<string, unknown>;
      const page = expect.stringContaining('https://cron.example.com/') as unknown;
      expect(sent).toMatchObject({ dedup_key: told, client_url: page });
      expect(sent['event_action']).toBe(event === 'opened' ? 'trigger' : 'resolve');
      // Of one that is over the message says until when it was.
      const { until: over } = (sent['payload'] as { custom_details: { until: string | null } }).custom_details;
      expect(over === null).toBe(event === 'opened');
    }
    // Nobody waits until they are closed.
    expect(await count(sql`SELECT count(*)::int FROM messages WHERE gathers_until IS NOT NULL`)).toBe(0);
  });

  it('of very many notifiers are recorded a thousand or so at a time, and each is told of each episode once', async () => {
    await putSchedules(volume, 120);
    for (let n = 0; n < 20; n += 1) await pager(`pager-${n}`);
    await breakAll();
    await work(['alertEffects'], untilNone);
    expect(await count(sql`SELECT count(*)::int FROM alerts`)).toBe(120);
    expect(
      await count(sql`SELECT count(*)::int FROM (SELECT DISTINCT m.notifier_id, a.alert_id FROM messages m
      JOIN message_alerts a USING (run_id)) AS told`),
    ).toBe(120 * 20);
    expect(await count(sql`SELECT count(*)::int FROM messages`)).toBe(120 * 20);
    expect(await mostPerTransaction()).toBeLessThanOrEqual(1_000);
  });
});

it('what follows from ends does not wait for what thousands of failures tell: nothing of that is done, and the follower is', async () => {
  await putSchedules(volume, 1_000);
  await pager();
  await breakAll();
  await breakAll();
  await volume.instance.put('other', { ...PULLED, enabled: false });
  await volume.instance.put('follower', {
    ...PULLED,
    cron: null,
    after: { scheduleId: 'other', on: ['failed'] },
  });
  await volume.store
    .rows(sql`INSERT INTO effects (kind, run_id, schedule_uid, schedule_version, schedule_id, trigger, status, finished_at, attempt)
    SELECT 'followers', gen_random_uuid(), uid, version, id, 'schedule', 'failed', clock_timestamp(), 1 FROM schedules WHERE id = 'other'`);
  const followed = async () => (await count(sql`SELECT count(*)::int FROM runs WHERE schedule_id = 'follower'`)) === 1;
  await work(['effects'], followed);
  expect(await effects()).toBe(2_000);
});

describe('a message that could not be delivered', () => {
  it('about very many episodes is told to a fallback of one incident each part by part, by any instance, each once', async () => {
    await leaveUndelivered(volume, { messages: 1, episodes: 1_300, channel: 'pagerduty' });
    const loops = ['alertEffects', 'begunEffects'] as const;
    await Promise.all([work(loops, untilNone), work(loops, untilNone)]);
    expect(
      await count(sql`SELECT count(*)::int FROM messages WHERE notifier_id = 'last' AND fallback_for = 'first'`),
    ).toBe(1_300);
    expect(
      await count(sql`SELECT count(DISTINCT a.alert_id)::int FROM messages m JOIN message_alerts a USING (run_id)
      WHERE m.notifier_id = 'last'`),
    ).toBe(1_300);
    expect(await mostPerTransaction()).toBeLessThanOrEqual(500);
  });

  it('is one message of a fallback that gathers, however many it is about', async () => {
    await leaveUndelivered(volume, { messages: 1, episodes: 1_300 });
    await work(['alertEffects'], untilNone);
    const [row] = await volume.store.rows<{ payload: string; told: number }>(
      sql`SELECT r.own_payload AS payload, (SELECT count(*)::int FROM message_alerts a WHERE a.run_id = r.id) AS told
        FROM messages m JOIN runs r ON r.id = m.run_id WHERE m.notifier_id = 'last'`,
    );
    expect(row?.told).toBe(1_300);
    expect(JSON.parse(row?.payload ?? '')).toMatchObject({
      event: 'opened',
      fallbackFor: 'first',
      more: 1_280,
    });
  });
});

describe('what another transaction keeps hides nothing of what is behind it', () => {
  const whileKept = async (isDone: () => Promise<boolean>) => {
    await volume.store.database.transaction(async (tx) => {
      await tx.execute(sql`SELECT FROM notifiers WHERE id = 's0' FOR UPDATE`);
      await work(['alertWatch'], isDone);
    });
  };

  it('of reminders', async () => {
    await leaveReminders(volume, { notifiers: 2, episodes: 600 });
    await volume.store.rows(
      sql`UPDATE alert_tellings SET remind_at = now() - interval '1 hour' WHERE notifier_id = 's0'`,
    );
    const left = (id: string) =>
      count(sql`SELECT count(*)::int FROM alert_tellings WHERE notifier_id = ${id} AND remind_at <= clock_timestamp()`);
    await whileKept(async () => (await left('s1')) === 0);
    expect(await left('s0')).toBe(600);
    await work(['alertWatch'], async () => (await left('s0')) === 0);
  });

  it('of messages that have gathered, and those that the database refuses hide nothing either', async () => {
    await putSchedules(volume, 1);
    for (const id of ['s0', 's1', 's2']) await putNotifier(volume.store, { id, url: '' });
    const leave = (id: string, messages: number) =>
      volume.store.rows(sql`INSERT INTO messages (run_id, notifier_id, event, gathers_until, created_at)
        SELECT gen_random_uuid(), ${id}, 'opened', now() - interval '1 second', now() FROM generate_series(1, ${messages}::int)`);
    await leave('s0', 150);
    await leave('s1', 3);
    await leave('s2', 1);
    await volume.store.rows(sql`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN IF new.notifier_id = ''s1'' THEN RAISE check_violation; END IF; RETURN new; END'`);
    await volume.store.rows(
      sql`CREATE TRIGGER refuse BEFORE UPDATE ON messages FOR EACH ROW EXECUTE FUNCTION refuse()`,
    );
    const left = (id: string) =>
      count(sql`SELECT count(*)::int FROM messages WHERE notifier_id = ${id} AND gathers_until IS NOT NULL`);
    await whileKept(async () => (await left('s2')) === 0);
    expect(await left('s0')).toBe(150);
    await work(['alertWatch'], async () => (await left('s0')) === 0);
    expect(await left('s1')).toBe(3);
  });
});
