import { sql } from 'drizzle-orm';
import { beforeEach, describe, expect, it } from 'vitest';
import { putNamed } from '../../../src/operations/named-changes.ts';
import { NOTIFIER_KIND, type NotifierContent } from '../../../src/operations/notifier-changes.ts';
import { createEventBus } from '../../../src/runtime/event-bus.ts';
import { forgetOldAlerts } from '../../../src/store/alerts/alert-rows.ts';
import { applyAll } from '../../support/effects.ts';
import { putNotifier } from '../../support/notifiers.ts';
import { instanceOfTest, storeOfTest } from '../../support/of-test.ts';
import type { Store } from '../../support/pipeline.ts';

let store: Store;

beforeEach(async () => {
  store = await storeOfTest();
  const instance = await instanceOfTest(store);
  await putNotifier(store, { id: 'chat', url: 'http://127.0.0.1:1/', channel: 'slack' });
  await instance.put('job', { url: 'http://127.0.0.1:1/' });
});

const wake = {
  ...{ effects: () => undefined, dispatch: () => undefined, workers: () => undefined },
  ...{ admission: () => undefined, alerts: () => undefined },
};
const change = (some: Partial<NotifierContent>) => {
  const deps = { database: store.database, events: createEventBus(), scope: null, wake };
  return putNamed(deps, NOTIFIER_KIND, 'chat', (current) => {
    if (!current) throw new Error('there is no such notifier');
    return { content: { ...current, ...some } };
  });
};

/** In how many seconds it is reminded of what is open; null: never. */
async function remindsIn(): Promise<number | null> {
  const [row] = await store.rows<{ seconds: number | null }>(
    sql`SELECT round(extract(epoch FROM remind_at - clock_timestamp()) / 10)::int * 10 AS seconds FROM alert_tellings`,
  );
  return row?.seconds ?? null;
}

async function breaks(): Promise<void> {
  await store.rows(sql`INSERT INTO effects
    (kind, alert_kind, run_id, schedule_uid, schedule_version, schedule_id, trigger, status, finished_at, attempt)
    SELECT 'breaks', 'failed', NULL, uid, version, id, 'schedule', 'failed', clock_timestamp(), 1 FROM schedules`);
  await applyAll(store);
}

describe('a notifier that has heard of what is open', () => {
  it('is reminded from the edit on that says so, which said never before', async () => {
    await change({ remindSeconds: null });
    await breaks();
    expect(await remindsIn()).toBe(null);
    await change({ remindSeconds: 60 });
    expect(await remindsIn()).toBe(60);
    await change({ remindSeconds: 3600 });
    expect(await remindsIn()).toBe(3600);
    await change({ remindSeconds: null });
    expect(await remindsIn()).toBe(null);
  });

  it('is reminded again once it is enabled, and not while it is disabled', async () => {
    await breaks();
    expect(await remindsIn()).toBe(86_400);
    await change({ enabled: false });
    expect(await remindsIn()).toBe(null);
    await change({ enabled: true, remindSeconds: 600 });
    expect(await remindsIn()).toBe(600);
  });

  it('keeps its time where the edit says nothing of that', async () => {
    await breaks();
    await store.rows(sql`UPDATE alert_tellings SET remind_at = clock_timestamp() + interval '100 seconds'`);
    await change({ description: 'of the team' });
    expect(await remindsIn()).toBe(100);
  });
});

it('old messages about thousands of episodes go part by part, and those that are kept keep theirs', async () => {
  await store.rows(sql`INSERT INTO messages (run_id, notifier_id, event, created_at)
    SELECT gen_random_uuid(), 'n', 'opened', now() - make_interval(days => days) FROM unnest('{40,39,38,1}'::int[]) AS days`);
  await store.rows(sql`INSERT INTO message_alerts (run_id, alert_id)
    SELECT run_id, gen_random_uuid() FROM messages, generate_series(1, 5000)`);
  const left = async () => {
    const [row] = await store.rows<{ messages: number; named: number }>(
      sql`SELECT (SELECT count(*)::int FROM messages) AS messages, count(*)::int AS named FROM message_alerts`,
    );
    return row;
  };
  const forget = () => store.database.transaction((tx) => forgetOldAlerts(tx, Date.now() - 30 * 86_400_000, 1_000));
  expect(await forget()).toBe(true);
  expect(await left()).toEqual({ messages: 4, named: 10_000 });
  expect(await forget()).toBe(false);
  expect(await left()).toEqual({ messages: 1, named: 5_000 });
});
