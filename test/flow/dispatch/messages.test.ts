import { sql } from 'drizzle-orm';
import { beforeEach, describe, expect, it } from 'vitest';
import { startMaintenance } from '../../../src/operations/installation-changes.ts';
import { cancelRun, retryRun } from '../../../src/operations/runs/act-on-runs.ts';
import { readInstallation } from '../../../src/store/instances/installation-row.ts';
import { leaveMessages } from '../../support/notifiers.ts';
import { instanceOfTest, receiverOfTest, storeOfTest, eachTest } from '../../support/of-test.ts';
import { leaveRuns } from '../../support/pending-runs.ts';
import type { TestInstance } from '../../support/pipeline.ts';
import { deadInstance, startRecovery } from '../../support/recovering.ts';
import { until } from '../../support/until.ts';

const store = eachTest(storeOfTest);
const receiver = eachTest(() =>
  receiverOfTest(({ path }, response) => {
    if (path === HANGS) return;
    response.writeHead((answers.length > 1 ? answers.shift() : answers[0]) ?? 200).end('{}');
  }),
);
/** Answers to calls of this path are not given. */
const HANGS = '/hangs';
/** How it answers other calls; the last answer goes on. */
let answers: number[];

beforeEach(() => {
  answers = [200];
});

interface Row {
  id: string;
  trigger: string;
  status: string;
  attempts: number;
  claimed_by: string | null;
  recoveries: number;
}
const messages = () => store.rows<Row>(sql`SELECT * FROM all_runs WHERE trigger = 'notify' ORDER BY id`);
const statuses = async () => [...new Set((await messages()).map(({ status }) => status))];
const allAre = (status: string) =>
  until(async () => {
    const found = await statuses();
    return (found.length === 1 && found[0] === status) || null;
  });
const toldIds = () =>
  receiver.arrivals.filter(({ path }) => path !== HANGS).map(({ headers }) => String(headers['webhook-id']));
const settledOf = (instance: TestInstance) => instance.events.filter(({ type }) => type === 'runSettled');

describe('a message of a notifier is delivered', () => {
  it('while maintenance holds all other runs', async () => {
    const instance = await instanceOfTest(store);
    await instance.put('held', { url: receiver.url });
    await startMaintenance(store.database, { mode: 'holds', until: null, reason: null });
    instance.installation.learn(await store.database.run(readInstallation));
    await leaveRuns(store, 'held');
    const [id] = await leaveMessages(store, { url: receiver.url });
    await instance.start();
    await allAre('succeeded');
    expect(toldIds()).toEqual([id]);
    const [message] = settledOf(instance);
    expect(message).toMatchObject({ runId: id, scheduleId: null, notifierId: 'oncall' });
  });

  it('while targets that answer nothing have all slots, one of them at the same place', async () => {
    const instance = await instanceOfTest(store, { concurrency: 2, concurrencyPerLane: 2 });
    const elsewhere = await receiverOfTest(() => undefined);
    await instance.put('near', { url: `${receiver.url}${HANGS}` });
    await instance.put('far', { url: elsewhere.url });
    for (const schedule of ['near', 'far']) await leaveRuns(store, schedule, { count: 4 });
    await instance.start();
    await until(() => instance.pipeline.dispatcher.inFlight() === 2 || null);
    await leaveMessages(store, { url: receiver.url });
    instance.pipeline.wake.dispatch();
    await allAre('succeeded');
    expect(instance.pipeline.dispatcher.inFlight()).toBe(2);
    expect(instance.pipeline.dispatchers.claimed()).toBe(instance.pipeline.dispatcher.claimed());
  });

  it('once, by one of two instances', async () => {
    const ids = await leaveMessages(store, { url: receiver.url, count: 40 });
    const [one, other] = [await instanceOfTest(store), await instanceOfTest(store)];
    await Promise.all([one.start(), other.start()]);
    await allAre('succeeded');
    expect(toldIds().sort()).toEqual(ids.sort());
    expect((await messages()).map(({ attempts }) => attempts)).toEqual(ids.map(() => 1));
  });

  it('again when it failed and is due once more, which the other dispatcher notices', async () => {
    answers = [503, 200];
    const retry = { maxAttempts: 3, minBackoffSeconds: 0.1, maxBackoffSeconds: 0.1 };
    const [id] = await leaveMessages(store, { url: receiver.url, retry });
    const instance = await instanceOfTest(store);
    await instance.start();
    await allAre('succeeded');
    expect(toldIds()).toEqual([id, id]);
  });

  it('by another instance when the one that had claimed it is gone', async () => {
    const dead = await deadInstance(store);
    const [id] = await leaveMessages(store, { url: receiver.url, claimedBy: dead });
    const instance = await instanceOfTest(store);
    await instance.start();
    // Others are given up that soon.
    const recovery = startRecovery(store, instance, { maxRecoveryAgeSeconds: 0 });
    await allAre('succeeded');
    await recovery.stop();
    expect(await messages()).toMatchObject([{ id, attempts: 2, recoveries: 1 }]);
    expect(recovery.eventsOf('runsTakenOver')).toMatchObject([{ runs: [{ notifierId: 'oncall', verdict: 'again' }] }]);
  });

  it('when it is retried by hand, under its id, and not once it is cancelled', async () => {
    answers = [400, 200];
    const [id = ''] = await leaveMessages(store, { url: receiver.url });
    const instance = await instanceOfTest(store);
    await instance.start();
    await allAre('failed');
    const retried = await retryRun(instance.deps, id);
    expect(retried).toMatchObject({
      run: { trigger: 'notify', notifierId: 'oncall', scheduleId: null, payload: '{"text":"it broke"}' },
    });
    await allAre('succeeded');
    expect(receiver.arrivals.map(({ body }) => body as unknown)).toEqual(
      ['it broke', 'it broke'].map((text) => ({ text })),
    );
    await instance.stop();
    const [other = ''] = await leaveMessages(store, { url: receiver.url, status: 'waiting' });
    expect(await cancelRun(instance.deps, other)).toMatchObject({
      run: { status: 'cancelled', reason: 'request' },
    });
  });
});

it.each([[1], [2]])(
  'fifty receivers that answer nothing, each with six messages, leave a slot to the next one: on %i instances',
  async (instances) => {
    for (let n = 0; n < 50; n += 1) {
      const { url } = await receiverOfTest(() => undefined);
      await leaveMessages(store, { url, notifier: `hangs-${n}`, count: 6, secondsAgo: 100 });
    }
    const all: TestInstance[] = [];
    for (let n = 0; n < instances; n += 1) all.push(await instanceOfTest(store));
    for (const instance of all) await instance.start();
    const underWay = () => all.reduce((sum, one) => sum + one.pipeline.messageDispatcher.inFlight(), 0);
    await until(() => underWay() >= 50 || null);
    await leaveMessages(store, { url: receiver.url });
    for (const { pipeline } of all) pipeline.wake.dispatch();
    await receiver.arrived(1);
    // None of those that hang has given up: nobody waited for that.
    expect(await statuses()).not.toContain('failed');
    expect((await messages()).filter(({ attempts }) => attempts > 1)).toEqual([]);
  },
);

it('a notifier whose target answers nothing delays no other one, and no run', async () => {
  const instance = await instanceOfTest(store, { concurrency: 2, concurrencyPerLane: 2 });
  await instance.put('job', { url: receiver.url });
  const frozen = await receiverOfTest(() => undefined);
  await leaveMessages(store, { url: frozen.url, notifier: 'frozen', count: 2_000 });
  await instance.start();
  await until(() => instance.pipeline.messageDispatcher.inFlight() >= 3 || null);
  const [id] = await leaveMessages(store, { url: receiver.url, notifier: 'quick' });
  await leaveRuns(store, 'job', { count: 20 });
  instance.pipeline.wake.dispatch();
  await until(() => toldIds().length === 21 || null);
  expect(toldIds()).toContain(id);
});

it('only the dispatcher of messages claims them, whatever else has room', async () => {
  const instance = await instanceOfTest(store);
  const [id] = await leaveMessages(store, { url: receiver.url });
  await store.rows(sql`UPDATE runs SET ready = false`);
  const { dispatcher, messageDispatcher, settler } = instance.pipeline;
  await settler.start();
  await dispatcher.start();
  const isReady = () => store.rows<{ ready: boolean }>(sql`SELECT ready FROM runs`);
  await until(async () => (await isReady()).find(({ ready }) => ready) ?? null);
  const passes = dispatcher.passes();
  await until(() => dispatcher.passes() > passes + 2 || null);
  expect(await messages()).toMatchObject([{ id, status: 'pending', attempts: 0, claimed_by: null }]);
  await messageDispatcher.start();
  await allAre('succeeded');
  expect(dispatcher.claimed()).toBe(0);
});

it('an instance that stops hands back the messages that it has not sent, and another one delivers them', async () => {
  await leaveMessages(store, { url: `${receiver.url}${HANGS}`, count: 20 });
  const one = await instanceOfTest(store);
  await one.start();
  const { messageDispatcher, dispatchers } = one.pipeline;
  await until(() => (messageDispatcher.inFlight() > 0 && messageDispatcher.claimed() > 4) || null);
  await messageDispatcher.stop();
  const claimed = (await messages()).filter(({ claimed_by }) => claimed_by === one.id).map(({ id }) => id);
  expect(claimed).toHaveLength(messageDispatcher.inFlight());
  expect(claimed.every((id) => dispatchers.hasClaim(id, 1))).toBe(true);
  const returned = (await messages()).filter(({ claimed_by }) => claimed_by === null);
  expect(returned.length + claimed.length).toBe(20);
});

it('a message that still gathers is not taken for the run of a schedule that is gone, and nothing follows its end', async () => {
  const [waiting = ''] = await leaveMessages(store, {
    url: receiver.url,
    status: 'waiting',
    notifier: 'gathers',
  });
  await leaveMessages(store, { url: receiver.url });
  const instance = await instanceOfTest(store);
  await instance.put('parent', { url: receiver.url });
  await instance.put('follower', {
    url: receiver.url,
    cron: null,
    after: { scheduleId: '*', on: ['succeeded'] },
  });
  const recovery = startRecovery(store, instance);
  await instance.start();
  await recovery.waits(0);
  await recovery.stop();
  await until(() => toldIds().length > 0 || null);
  await until(() => instance.pipeline.dispatchers.claimed() === 0 || null);
  expect(await messages()).toEqual(
    expect.arrayContaining([expect.objectContaining({ id: waiting, status: 'waiting' })]),
  );
  expect(await store.rows(sql`SELECT FROM effects`)).toEqual([]);
  expect(await store.rows(sql`SELECT FROM all_runs WHERE trigger = 'after'`)).toEqual([]);
});
