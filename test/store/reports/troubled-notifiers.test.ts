import { sql } from 'drizzle-orm';
import { beforeEach, expect, it } from 'vitest';
import { sampleNotifiers } from '../../../src/store/reports/gauges.ts';
import { leaveMessages } from '../../support/notifiers.ts';
import { sqlOfTest, storeOfTest } from '../../support/of-test.ts';
import type { Store } from '../../support/pipeline.ts';
import { changeRun } from '../../support/run-rows.ts';

let store: Store;
beforeEach(async () => {
  store = await storeOfTest();
});

const URL = 'http://127.0.0.1:9';
const sampled = async () => (await store.database.run(sampleNotifiers)).values;
/** A message of a notifier that ended so, so long ago. */
const ended = async (notifier: string, status: string, secondsAgo: number) => {
  const [id = ''] = await leaveMessages(store, { url: URL, notifier, secondsAgo });
  const at = new Date(Date.now() - secondsAgo * 1000).toISOString();
  await changeRun(sqlOfTest(store.url), id, { status, reason: 'age', finished_at: at, updated_at: at });
};

it('notifiers are told apart by their newest message that ended and was not called off', async () => {
  await ended('broken', 'succeeded', 60);
  await ended('broken', 'failed', 50);
  await ended('gave-up', 'abandoned', 50);
  await ended('gave-up', 'cancelled', 40);
  await ended('mended', 'failed', 60);
  await ended('mended', 'succeeded', 50);
  expect(await sampled()).toEqual({ undelivered: ['broken', 'gave-up'], waiting: [] });
  await store.rows(sql`UPDATE notifiers SET enabled = false WHERE id = 'broken'`);
  await store.rows(sql`DELETE FROM notifiers WHERE id = 'gave-up'`);
  expect(await sampled()).toEqual({ undelivered: [], waiting: [] });
});

it('what ended before yesterday says nothing of today', async () => {
  await ended('broken', 'failed', 60);
  await store.rows(sql`UPDATE history SET ended_at = ended_at - interval '25 hours'`);
  expect(await sampled()).toEqual({ undelivered: [], waiting: [] });
});

it('a message that is not delivered after five minutes is noticed, whatever it waits for', async () => {
  const later = sql`UPDATE runs SET due_at = clock_timestamp() + interval '10 minutes', ready = false WHERE notifier_id = 'retries'`;
  await leaveMessages(store, { url: URL, notifier: 'waits', secondsAgo: 310 });
  await leaveMessages(store, { url: URL, notifier: 'retries', secondsAgo: 310 });
  await leaveMessages(store, { url: URL, notifier: 'gathers', secondsAgo: 310, status: 'waiting' });
  await leaveMessages(store, { url: URL, notifier: 'young', secondsAgo: 200, count: 3 });
  await store.rows(later);
  expect(await sampled()).toEqual({ undelivered: [], waiting: ['gathers', 'retries', 'waits'] });
});
