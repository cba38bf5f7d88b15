import { sql } from 'drizzle-orm';
import { beforeEach, describe, expect, it } from 'vitest';
import type { AlertKind } from '../../../src/core/alerts/alert.ts';
import { findReminders, remind } from '../../../src/store/alerts/reminders.ts';
import { applyAll } from '../../support/effects.ts';
import { putNotifier } from '../../support/notifiers.ts';
import { instanceOfTest, receiverOfTest, storeOfTest } from '../../support/of-test.ts';
import type { Store, TestInstance } from '../../support/pipeline.ts';
import type { Receiver } from '../../support/receiver.ts';
import { until } from '../../support/until.ts';

let store: Store;
let instance: TestInstance;
let receiver: Receiver;
let watch: TestInstance['pipeline']['alertWatch'];
/** What it answers. */
let status: number;

beforeEach(async () => {
  store = await storeOfTest();
  status = 200;
  receiver = await receiverOfTest((_, response) => {
    response.statusCode = status;
    response.end('{}');
  });
  instance = await instanceOfTest(store);
  await instance.putMany(['a', 'b'], { url: '' });
  watch = (await instanceOfTest(store)).pipeline.alertWatch;
  await watch.start();
});

const notifier = (id: string, more: Partial<Parameters<typeof putNotifier>[1]> = {}) =>
  putNotifier(store, { id, url: `${receiver.url}/${id}`, ...more });

/** Something that happened to a schedule now; what follows is recorded. */
async function happens(kind: 'breaks' | 'heals', scheduleId: string, alertKind: AlertKind = 'failed') {
  await store.rows(sql`INSERT INTO effects
    (kind, alert_kind, schedule_uid, schedule_version, schedule_id, trigger, status, finished_at, attempt)
    SELECT ${kind}, ${alertKind}, uid, version, id, 'schedule', 'failed', clock_timestamp(), 0 FROM schedules WHERE id = ${scheduleId}`);
  await applyAll(store);
}

interface MessageRow {
  run_id: string;
  notifier_id: string;
  event: string;
  status: string;
  told: string;
}
const messages = () =>
  store.rows<MessageRow>(sql`SELECT m.run_id, m.notifier_id, m.event, r.status,
      coalesce((SELECT string_agg(a.schedule_id, ',' ORDER BY a.schedule_id) FROM message_alerts t JOIN alerts a ON a.id = t.alert_id
        WHERE t.run_id = m.run_id), '') AS told
    FROM messages m JOIN all_runs r ON r.id = m.run_id ORDER BY m.created_at, m.event, m.run_id`);
const linesOf = async () =>
  (await messages()).map(({ notifier_id, event, status: is, told }) => `${notifier_id} ${event} ${told} ${is}`);
/** Closes what has gathered, as if the ten seconds had passed. */
async function gathered(): Promise<void> {
  await store.rows(sql`UPDATE messages SET gathers_until = clock_timestamp() WHERE gathers_until IS NOT NULL`);
  watch.wake();
  await until(async () =>
    (await store.rows(sql`SELECT FROM messages WHERE gathers_until IS NOT NULL`)).length === 0 ? true : null,
  );
}
/** A try of each open message has ended like that. */
const tried = (outcome: 'transient' | 'unknown') =>
  store.rows(sql`UPDATE runs SET attempts = 1, failures = 1, due_at = now() + interval '1 minute', ready = false,
    attempt_log = jsonb_build_array(jsonb_build_object('attempt', 1, 'outcome', ${outcome}::text)) WHERE status = 'pending'`);
/** An instance hands each open message to its receiver. */
const claim = () =>
  store.rows(sql`UPDATE runs SET claimed_by = gen_random_uuid(), claimed_at = now() WHERE status = 'pending'`);
/** Another transaction has the messages that wait. */
const whileLocked = (work: () => Promise<void>) =>
  store.database.transaction(async (tx) => {
    await tx.execute(sql`SELECT FROM runs WHERE status = 'waiting' FOR UPDATE`);
    await work();
  });
const dueNow = () => store.rows(sql`UPDATE runs SET due_at = now(), ready = true WHERE status = 'pending'`);
const arrived = (path: string) =>
  receiver.arrivals.filter((one) => one.path === path).map(({ body }) => body as Record<string, unknown>);

describe('a message about an episode', () => {
  it('of an incident is not overtaken by its end, which waits for it', async () => {
    await notifier('pager', { channel: 'pagerduty', attempts: 5 });
    await happens('breaks', 'a');
    await tried('unknown');
    await happens('heals', 'a');
    expect(await linesOf()).toEqual(['pager opened a pending', 'pager recovered a waiting']);
    await instance.start();
    await dueNow();
    await until(() => (arrived('/pager').length === 2 ? true : null));
    expect(arrived('/pager').map(({ event_action: action }) => action)).toEqual(['trigger', 'resolve']);
  });

  it('of an incident that was surely not opened, since its receiver refused it, is not sent, and neither is its end', async () => {
    await notifier('pager', { channel: 'pagerduty' });
    await happens('breaks', 'a');
    await tried('transient');
    await happens('heals', 'a');
    expect(await linesOf()).toEqual(['pager opened  cancelled']);
    expect(await store.rows(sql`SELECT FROM effects`)).toEqual([]);
  });

  it('that broke and was well twice while a message gathers is told once, and the last word is that it is well', async () => {
    await notifier('chat');
    for (const kind of ['breaks', 'heals', 'breaks', 'heals'] as const) await happens(kind, 'a');
    await gathered();
    expect(await linesOf()).toEqual(['chat opened  cancelled', 'chat recovered a pending']);
  });

  it('that is told to be over is left out of the next try of a message about more, whose text says so', async () => {
    await notifier('chat');
    await happens('breaks', 'a');
    await happens('breaks', 'b');
    await gathered();
    await tried('transient');
    const [before] = await messages();
    await happens('heals', 'a');
    expect(await linesOf()).toEqual(['chat opened b pending', 'chat recovered a waiting']);
    const [after] = await store.rows<{ id: string; own_payload: string }>(
      sql`SELECT id, own_payload FROM runs WHERE status = 'pending'`,
    );
    expect(after?.id).toBe(before?.run_id);
    const told = JSON.parse(after?.own_payload ?? '') as { alerts: { scheduleId: string }[] };
    expect(told.alerts.map(({ scheduleId }) => scheduleId)).toEqual(['b']);
    await gathered();
    expect(await linesOf()).toEqual(['chat opened b pending', 'chat recovered a pending']);
  });

  it('is not overtaken by its end where its message is written anew, since another of its episodes is over', async () => {
    await notifier('chat', { attempts: 5 });
    await happens('breaks', 'a');
    await happens('breaks', 'b');
    await gathered();
    await claim();
    await happens('heals', 'a');
    await gathered();
    await store.rows(sql`UPDATE runs SET claimed_by = NULL, claimed_at = NULL`);
    await tried('transient');
    await happens('heals', 'b');
    expect(await linesOf()).toEqual(['chat opened a pending', 'chat recovered a waiting', 'chat recovered b waiting']);
    await instance.start();
    await dueNow();
    await until(() => (arrived('/chat').length === 2 ? true : null));
    expect(arrived('/chat').map(({ event }) => event)).toEqual(['opened', 'recovered']);
  });

  it('does not open again while another transaction has the message that it is over, which waits for its opening', async () => {
    await notifier('pager', { channel: 'pagerduty' });
    await happens('breaks', 'a');
    await claim();
    await happens('heals', 'a');
    const over = ['pager opened a pending', 'pager recovered a waiting'];
    await whileLocked(async () => {
      await happens('breaks', 'a');
      expect(await linesOf()).toEqual(over);
      expect(await store.rows(sql`SELECT FROM alerts WHERE until IS NULL`)).toEqual([]);
    });
    await applyAll(store);
    expect(await linesOf()).toEqual(['pager opened a pending', 'pager recovered  cancelled', 'pager opened a pending']);
  });

  it('and that has opened again is told so at the end of its time of silence, but not while that transaction lasts', async () => {
    await notifier('pager', { channel: 'pagerduty' });
    await happens('breaks', 'a');
    await claim();
    await happens('heals', 'a');
    await store.rows(sql`UPDATE alerts SET until = NULL`);
    await store.rows(sql`INSERT INTO alert_tellings (alert_id, notifier_id, remind_at, held_until, told_over)
      SELECT id, 'pager', now(), now(), true FROM alerts`);
    const look = async () => {
      const { due } = await store.database.run((db) =>
        findReminders(db, { limit: 10, besides: [], besideNotifiers: [] }),
      );
      return store.database.transaction((tx) => remind(tx, due, null));
    };
    await whileLocked(async () => {
      expect([...(await look()).locked]).toEqual(['pager']);
      expect(await linesOf()).toEqual(['pager opened a pending', 'pager recovered a waiting']);
    });
    await look();
    expect(await linesOf()).toContain('pager recovered  cancelled');
  });

  it('is never told as broken after a person has paused its schedule before anybody heard of it', async () => {
    await notifier('chat');
    await happens('breaks', 'a');
    await instance.put('a', { url: '', enabled: false });
    watch.wake();
    await until(async () => ((await store.rows(sql`SELECT FROM alert_tellings`)).length === 0 ? true : null));
    await gathered();
    expect(await linesOf()).toEqual(['chat opened  cancelled']);
  });
});

describe('a message that gathers', () => {
  it('for a chat that has become a pager meanwhile is one incident for each episode', async () => {
    await notifier('chat');
    await happens('breaks', 'a');
    await happens('breaks', 'b');
    await store.rows(sql`UPDATE notifiers SET channel = 'pagerduty'`);
    await gathered();
    expect((await linesOf()).sort()).toEqual([
      'chat opened  cancelled',
      'chat opened a pending',
      'chat opened b pending',
    ]);
  });

  it('and is cancelled by hand swallows nothing of what breaks after it', async () => {
    await notifier('chat');
    await happens('breaks', 'a');
    await store.rows(sql`WITH ended AS (DELETE FROM runs RETURNING *)
      INSERT INTO history (id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, status, reason, lane, priority, due_at,
        attempts, created_at, updated_at, finished_at, ended_at)
      SELECT id, scheduled_for, schedule_uid, schedule_version, schedule_id, trigger, 'cancelled', 'request', lane, priority, due_at, 0,
        now(), now(), now(), now() FROM ended`);
    await happens('breaks', 'b');
    await gathered();
    expect(await linesOf()).toEqual(['chat opened a cancelled', 'chat opened b pending']);
  });
});

describe('what the fallback was told', () => {
  const undelivered = (runId: string) =>
    store.rows(sql`INSERT INTO effects (kind, run_id, schedule_uid, schedule_version, schedule_id, trigger, status, finished_at, attempt)
      VALUES ('undelivered', ${runId}, gen_random_uuid(), 1, '', 'notify', 'failed', now(), 1)`);

  it('ends there too, however often the message is tried in vain', async () => {
    await notifier('last', { on: [] });
    await notifier('first', { fallback: 'last', channel: 'pagerduty' });
    await happens('breaks', 'a');
    const [opened] = await messages();
    await tried('unknown');
    for (let tries = 0; tries < 2; tries += 1) {
      await undelivered(opened?.run_id ?? '');
      await applyAll(store);
    }
    expect(await linesOf()).toEqual(['first opened a pending', 'last opened a pending']);
    await claim();
    await happens('heals', 'a');
    expect((await linesOf()).slice(2).sort()).toEqual(['first recovered a waiting', 'last recovered a waiting']);
  });

  it('was over when it came there is told so, and to a pager not at all', async () => {
    await notifier('last', { on: [] });
    await notifier('pager', { on: [], channel: 'pagerduty' });
    for (const [id, fallback] of [
      ['one', 'last'],
      ['two', 'pager'],
    ] as const)
      await notifier(id, { fallback, channel: 'pagerduty' });
    await happens('breaks', 'a');
    await tried('unknown');
    await happens('heals', 'a');
    for (const { run_id, event } of await messages()) if (event === 'opened') await undelivered(run_id);
    await applyAll(store);
    const atFallback = (await linesOf()).filter((line) => /^(last|pager) /.test(line));
    expect(atFallback).toEqual(['last recovered a pending']);
  });

  it('is a message that was tried in vain for an hour, and goes on being tried', async () => {
    status = 503;
    await notifier('last', { on: [] });
    await notifier('first', { fallback: 'last', channel: 'pagerduty', attempts: 1_000 });
    await happens('breaks', 'a');
    await store.rows(sql`UPDATE runs SET scheduled_for = now() - interval '61 minutes'`);
    await instance.start();
    await until(async () => ((await linesOf()).length === 2 ? true : null));
    await instance.stop();
    expect((await messages()).find(({ notifier_id }) => notifier_id === 'first')).toMatchObject({
      status: 'pending',
    });
  });
});
