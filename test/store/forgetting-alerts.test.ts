import { sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { forgetOldAlerts } from '../../src/store/alerts/alert-rows.ts';
import { storeOfTest } from '../support/of-test.ts';

const DAY_MS = 86_400_000;

test('old messages about thousands of episodes go part by part, and those that are kept keep theirs', async () => {
  const store = await storeOfTest();
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
  const forget = () =>
    store.database.transaction((tx) => forgetOldAlerts(tx, Date.now() - 30 * DAY_MS, 1_000));
  expect(await forget()).toBe(true);
  expect(await left()).toEqual({ messages: 4, named: 10_000 });
  expect(await forget()).toBe(false);
  expect(await left()).toEqual({ messages: 1, named: 5_000 });
});
