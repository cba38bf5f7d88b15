import { sql } from 'drizzle-orm';
import { beforeEach, describe, expect, it } from 'vitest';
import { findReminders, remind } from '../../../src/store/alerts/reminders.ts';
import { applyAll } from '../../support/effects.ts';
import { putNotifier } from '../../support/notifiers.ts';
import { instanceOfTest, storeOfTest } from '../../support/of-test.ts';
import type { Store, TestInstance } from '../../support/pipeline.ts';

let store: Store;
let instance: TestInstance;

beforeEach(async () => {
  store = await storeOfTest();
  // It writes schedules; its loops stand still.
  instance = await instanceOfTest(store);
  await instance.put('job', { url: '' });
  await putNotifier(store, { id: 'chat', url: '', channel: 'slack' });
  await putNotifier(store, { id: 'pager', url: '', channel: 'pagerduty' });
});

async function happens(kind: 'breaks' | 'heals'): Promise<void> {
  await store.rows(sql`INSERT INTO effects
    (kind, alert_kind, schedule_uid, schedule_version, schedule_id, trigger, status, finished_at, attempt)
    SELECT ${kind}, 'failed', uid, version, id, 'schedule', 'failed', clock_timestamp(), 0 FROM schedules`);
  await applyAll(store);
}

/** All messages so far have arrived. */
const arrive = async () => {
  await store.rows(sql`UPDATE messages SET gathers_until = NULL`);
  await store.rows(sql`DELETE FROM runs`);
};

/** So many seconds pass, and the watch sees to what is due. */
async function pass(seconds: number): Promise<void> {
  const ago = sql`make_interval(secs => ${seconds})`;
  await store.rows(
    sql`UPDATE alerts SET since = since - ${ago}, until = until - ${ago}, broken_at = broken_at - ${ago}`,
  );
  await store.rows(sql`UPDATE alert_tellings SET remind_at = remind_at - ${ago}, held_until = held_until - ${ago}`);
  const { due } = await store.database.run((db) => findReminders(db, { limit: 100, besides: [], besideNotifiers: [] }));
  await store.database.transaction((tx) => remind(tx, due, null));
}

/** What each was told since the last time, in order. */
let heard = 0;
async function told(): Promise<string[]> {
  const rows = await store.rows<{
    said: string;
  }>(sql`SELECT m.notifier_id || ' ' || m.event AS said FROM messages m
    WHERE EXISTS (SELECT FROM message_alerts a WHERE a.run_id = m.run_id) ORDER BY m.created_at, m.notifier_id`);
  const since = rows.slice(heard).map(({ said }) => said);
  heard = rows.length;
  await arrive();
  return since;
}

const episodes = () =>
  store.rows<{ id: string; since: string; is_open: boolean }>(
    sql`SELECT id, since, until IS NULL AS is_open FROM alerts ORDER BY id`,
  );
const tellings = () => store.rows(sql`SELECT FROM alert_tellings`);
/** It is open again after it was over, and all have heard so. */
async function openAgain(): Promise<void> {
  heard = 0;
  for (const kind of ['breaks', 'heals', 'breaks'] as const) {
    await happens(kind);
    await arrive();
  }
  await told();
}
const both = (event: string) => [`chat ${event}`, `pager ${event}`];

describe('an episode that opens again within five minutes of its end', () => {
  it('is the same one, keeps its key and since when it is, and is told as ever', async () => {
    heard = 0;
    await happens('breaks');
    const [first] = await episodes();
    expect(await told()).toEqual(both('opened'));
    await happens('heals');
    expect(await told()).toEqual(both('recovered'));
    await happens('breaks');
    expect(await told()).toEqual(both('opened'));
    expect(await episodes()).toEqual([first]);
  });

  it('is told at most once in five minutes from then on, however often it opens, and the last word is how it stands', async () => {
    await openAgain();
    for (let times = 0; times < 60; times += 1) {
      await happens('heals');
      await happens('breaks');
    }
    await pass(150);
    await happens('heals');
    expect(await told()).toEqual([]);
    await pass(151);
    expect(await told()).toEqual(both('recovered'));
    await happens('breaks');
    await pass(150);
    expect(await told()).toEqual([]);
    await pass(151);
    expect(await told()).toEqual(both('opened'));
    expect(await episodes()).toMatchObject([{ is_open: true }]);
  });

  it('and stands as it was told once the five minutes have passed is not told again', async () => {
    await openAgain();
    await happens('heals');
    await happens('breaks');
    await pass(301);
    expect(await told()).toEqual([]);
    await happens('heals');
    expect(await told()).toEqual(both('recovered'));
  });

  it('and is over for five minutes is done with: what breaks then is another one, told at once', async () => {
    await openAgain();
    await happens('heals');
    await pass(301);
    expect(await told()).toEqual(both('recovered'));
    await pass(301);
    expect(await tellings()).toEqual([]);
    await happens('breaks');
    expect(await told()).toEqual(both('opened'));
    expect(await episodes()).toMatchObject([{ is_open: false }, { is_open: true }]);
  });

  it('while it is held and a person pauses the schedule resolves the incident at once', async () => {
    await openAgain();
    await instance.put('job', { url: '', enabled: false });
    await pass(1);
    expect(await told()).toEqual(['pager recovered']);
    await pass(301);
    expect(await tellings()).toEqual([]);
  });

  it('is told no sooner where a person has paused and resumed the schedule meanwhile, be it open or told to be over', async () => {
    const pauseAndResume = async () => {
      await instance.put('job', { url: '', enabled: false });
      await pass(1);
      await instance.put('job', { url: '' });
      await happens('breaks');
    };
    await openAgain();
    await pass(301);
    await pauseAndResume();
    expect(await told()).toEqual(['pager recovered']);
    await pass(301);
    expect(await told()).toEqual(both('opened'));
    await pass(150);
    await happens('heals');
    await pass(151);
    expect(await told()).toEqual(both('recovered'));
    await happens('breaks');
    await pauseAndResume();
    expect(await told()).toEqual([]);
    await pass(301);
    expect(await told()).toEqual(both('opened'));
  });

  it('is another one where the schedule was deleted and made again', async () => {
    heard = 0;
    await happens('breaks');
    await instance.remove('job');
    await instance.put('job', { url: '' });
    await happens('breaks');
    expect(await episodes()).toMatchObject([{ is_open: false }, { is_open: true }]);
  });

  it('is reminded of no sooner than its notifier asks', async () => {
    await openAgain();
    await pass(301);
    await pass(80_000);
    expect(await told()).toEqual([]);
    await pass(7_000);
    expect(await told()).toEqual(both('reminder'));
  });

  it('takes back the word that it is over, where no try may have told it', async () => {
    heard = 0;
    await happens('breaks');
    await told();
    await happens('heals');
    await happens('breaks');
    expect(await told()).toEqual(both('opened'));
  });

  it('waits for the word that it is over, where a try may have told it', async () => {
    heard = 0;
    await happens('breaks');
    await told();
    await happens('heals');
    await store.rows(
      sql`UPDATE runs SET claimed_by = gen_random_uuid(), claimed_at = now(), attempts = 1 WHERE status = 'pending'`,
    );
    await happens('breaks');
    const rows = await store.rows(sql`SELECT m.event, r.status FROM messages m JOIN runs r ON r.id = m.run_id
      WHERE m.notifier_id = 'pager' ORDER BY m.created_at`);
    expect(rows).toEqual([
      { event: 'recovered', status: 'pending' },
      { event: 'opened', status: 'waiting' },
    ]);
  });
});

describe('a notifier that hears of failures after three in a row', () => {
  beforeEach(async () => {
    await store.rows(sql`UPDATE notifiers SET after_failures = 3`);
    heard = 0;
  });
  const happen = async (...kinds: ('breaks' | 'heals')[]) => {
    for (const kind of kinds) await happens(kind);
  };

  it('is told with the third, once, and that it is over', async () => {
    await happen('breaks', 'breaks');
    expect(await told()).toEqual([]);
    await happen('breaks');
    expect(await told()).toEqual(both('opened'));
    await happen('breaks', 'breaks');
    expect(await told()).toEqual([]);
    await happen('heals');
    expect(await told()).toEqual(both('recovered'));
    expect(await tellings()).toEqual([]);
  });

  it('hears nothing of two, nor that they are over, and a success begins anew', async () => {
    await happen('breaks', 'breaks', 'heals', 'breaks', 'breaks');
    expect(await told()).toEqual([]);
    expect(await episodes()).toMatchObject([{ is_open: true }]);
    await happen('heals');
    await pass(301);
    expect(await told()).toEqual([]);
    await happen('breaks', 'breaks', 'breaks');
    expect(await told()).toEqual(both('opened'));
  });

  it('is told of three that are found at once, and of other kinds with the first', async () => {
    await store.rows(sql`INSERT INTO effects
      (kind, alert_kind, schedule_uid, schedule_version, schedule_id, trigger, status, finished_at, attempt)
      SELECT 'breaks', k, uid, version, id, 'schedule', 'failed', clock_timestamp(), 0
      FROM schedules, unnest(ARRAY['failed', 'missed', 'failed', 'failed']) AS k`);
    await applyAll(store);
    const rows = await store.rows(sql`SELECT a.kind FROM alerts a JOIN message_alerts t ON t.alert_id = a.id
      JOIN messages m ON m.run_id = t.run_id WHERE m.notifier_id = 'pager' ORDER BY a.kind`);
    expect(rows).toEqual([{ kind: 'failed' }, { kind: 'missed' }]);
  });

  it('of an episode that opens again hears no sooner, also once its five minutes have passed', async () => {
    await happen('breaks', 'breaks', 'breaks');
    await told();
    await happen('heals');
    await told();
    await happen('breaks', 'breaks', 'breaks');
    await told();
    await pass(301);
    await happen('heals');
    expect(await told()).toEqual(both('recovered'));
    await happen('breaks', 'heals', 'breaks');
    await pass(301);
    expect(await told()).toEqual([]);
    await happen('breaks', 'breaks');
    expect(await told()).toEqual(both('opened'));
    await pass(301);
    await happen('heals');
    expect(await told()).toEqual(both('recovered'));
    await happen('breaks', 'breaks', 'breaks');
    expect(await told()).toEqual([]);
    await pass(301);
    expect(await told()).toEqual(both('opened'));
  });
});
