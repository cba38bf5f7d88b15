import { sql } from 'drizzle-orm';
import { beforeEach, expect, it, onTestFinished } from 'vitest';
import type { FirelockEvent } from '../../../src/core/events.ts';
import type { Definition, HttpTarget, Schedule } from '../../../src/core/schedules/schedule.ts';
import { TargetCanceller } from '../../../src/flow/cancel-target.ts';
import { createHandoffDefinitions } from '../../../src/flow/handoff/handoff-definitions.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { createEventBus } from '../../../src/runtime/event-bus.ts';
import { type Database, openDatabase } from '../../../src/postgres/database.ts';
import type { Effect } from '../../../src/store/effects/effect-rows.ts';
import { createHttpTarget } from '../../../src/targets/http.ts';
import { createTargetRegistry } from '../../../src/targets/target.ts';
import { instanceOfTest, receiverOfTest, storeOfTest, eachTest } from '../../support/of-test.ts';
import { startReceiver } from '../../support/receiver.ts';
import { SECRETS } from '../../support/secrets.ts';
import { ATTACK } from '../../support/runner/attack.ts';
import { until } from '../../support/until.ts';
import { targetAt } from '../../support/targets.ts';

const store = eachTest(storeOfTest);
const instance = eachTest(() => instanceOfTest(store));
const receiver = eachTest(() =>
  receiverOfTest(({ path }, response) => {
    response.statusCode = path.startsWith('/refused') ? 409 : 202;
    response.end();
  }),
);
/** Takes requests and never answers. */
const silent = eachTest(() => receiverOfTest(() => undefined));
let cancelled: Extract<FirelockEvent, { type: 'targetCancelled' }>[];

beforeEach(() => {
  cancelled = [];
});

const NOON = Date.UTC(2026, 10, 20, 12);
const targetWith = (cancel: HttpTarget<string>['cancel']): HttpTarget =>
  targetAt(cancel?.url ?? 'http://127.0.0.1:1/', { cancel });
const cancelBy = (url: string, headers = {}) => targetWith({ url, method: 'POST', headers });
const put = (id: string, target: Definition['target'], more: Partial<Definition> = {}) =>
  instance.put(id, { url: '', ...more, target });
/** What is to follow from the cancellation of a run for noon. */
const runOf = ({ uid, id, version }: Schedule, n = 1): Effect => ({
  id: n,
  kind: 'cancel',
  runId: `${NOON.toString(16)
    .padStart(12, '0')
    .replace(/(.{8})/, '$1-')}-7abc-8def-${String(n).padStart(12, '0')}`,
  scheduleUid: uid,
  scheduleVersion: version,
  scheduleId: id,
  trigger: 'schedule',
  status: 'cancelled',
  finishedAt: NOON + 1_000,
  attempt: 3,
  alertKind: null,
  followerUid: null,
  doneThrough: null,
  scope: null,
  createdAt: NOON + 1_000,
  failures: 0,
});
const cancelledOf = (count: number) => until(() => (cancelled.length >= count ? cancelled : null));

function canceller(database: Database = store.database, bounds = {}): TargetCanceller {
  const events = createEventBus();
  events.subscribe((event) => {
    if (event.type === 'targetCancelled') cancelled.push(event);
  });
  const targets = createTargetRegistry([
    createHttpTarget({ clock: systemClock, version: 'test', connectionsPerOrigin: 16 }),
  ]);
  const definitions = createHandoffDefinitions(database, SECRETS);
  const made = new TargetCanceller({
    definitions,
    readConnection: () => Promise.resolve({ connection: null }),
    targets,
    events,
    ...bounds,
  });
  onTestFinished(async () => {
    await made.stop();
    await targets.close();
  });
  return made;
}

it('a target is called once after a cancellation, by the definition under which the run was planned', async () => {
  const url = `${receiver.url}/off/{{runName}}?n={{attempt}}`;
  const schedule = await put('job', cancelBy(url, { 'X-Of': '{{scheduleId}}' }), { payload: '{"a":1}' });
  await put('job', cancelBy(`${receiver.url}/newer`));
  canceller().add([runOf(schedule)]);
  expect(await cancelledOf(1)).toEqual([
    { type: 'targetCancelled', runId: runOf(schedule).runId, scheduleId: 'job', accepted: true, error: null },
  ]);
  expect(receiver.arrivals).toHaveLength(1);
  expect(receiver.arrivals[0]).toMatchObject({
    path: '/off/job%402026-11-20T12%3A00%3A00.000Z?n=3',
    text: '',
    headers: { 'webhook-id': runOf(schedule).runId, 'x-of': 'job' },
  });
});

it('the target of a run that is replaced while it is running is called', async () => {
  const job = { ...cancelBy(`${receiver.url}/off/{{runId}}`), url: `${receiver.url}/job` };
  await put('job', job, { overlap: 'replace', completion: 'callback' });
  await instance.start();
  const first = await instance.fire('job');
  await until(() => instance.events.find((event) => event.type === 'runSettled') ?? null);
  const second = await instance.fire('job');
  await receiver.arrived(3);
  expect(receiver.arrivals.map(({ path }) => path).sort()).toEqual(['/job', '/job', `/off/${first.id}`]);
  const runs = await store.rows<{ id: string; status: string }>(
    sql`SELECT id, status FROM all_runs ORDER BY created_at`,
  );
  expect(runs[0]).toEqual({ id: first.id, status: 'cancelled' });
  expect(runs[1]?.id).toBe(second.id);
  expect(await store.rows(sql`SELECT FROM effects WHERE kind = 'cancel'`)).toEqual([]);
});

it('a one-off run is named by its id', async () => {
  const schedule = await put('job', cancelBy(`${receiver.url}/{{runName}}/{{scheduleId}}`));
  const run: Effect = { ...runOf(schedule), scheduleId: null, trigger: 'api' };
  canceller().add([run]);
  expect(await cancelledOf(1)).toMatchObject([{ scheduleId: null, accepted: true }]);
  expect(receiver.arrivals[0]).toMatchObject({ path: `/${run.runId}/`, headers: { 'ce-source': '/runs' } });
});

it('a target without a cancel call is sent nothing, nor a worker, nor a target whose definition is gone', async () => {
  const plain = await put('plain', targetWith(null));
  const pull = await put('pull', { type: 'pull', queue: 'q' });
  const last = await put('last', cancelBy(`${receiver.url}/last`));
  canceller().add([runOf(plain), runOf(pull), { ...runOf(plain), scheduleVersion: 7 }, runOf(last)]);
  expect(await cancelledOf(1)).toMatchObject([{ scheduleId: 'last', accepted: true }]);
  expect(receiver.arrivals).toHaveLength(1);
});

it('a target that refuses the call is not called again, and the reason is reported', async () => {
  const refused = await put('refused', cancelBy(`${receiver.url}/refused`));
  const slow = await put('slow', cancelBy(silent.url), { timeoutSeconds: 1 });
  canceller().add([runOf(refused), runOf(slow)]);
  await cancelledOf(2);
  expect(cancelled).toContainEqual(
    expect.objectContaining({ scheduleId: 'refused', accepted: false, error: 'the target answered 409' }),
  );
  expect(cancelled).toContainEqual(
    expect.objectContaining({ scheduleId: 'slow', accepted: false, error: 'no complete answer within 1 s' }),
  );
  expect(receiver.arrivals).toHaveLength(1);
  // On a slow machine the second may be over before it is sent.
  expect(silent.arrivals.length).toBeLessThanOrEqual(1);
});

it('a silent target delays only its own', async () => {
  const stuck = await put('stuck', cancelBy(silent.url));
  const fine = await put('fine', cancelBy(`${receiver.url}/fine`));
  const made = canceller();
  made.add(Array.from({ length: 20 }, (_, n) => runOf(stuck, n)));
  await silent.arrived(4);
  made.add(Array.from({ length: 20 }, (_, n) => runOf(fine, n)));
  await cancelledOf(20);
  expect(cancelled.every((event) => event.scheduleId === 'fine' && event.accepted)).toBe(true);
  expect(silent.arrivals).toHaveLength(4);
});

it('silent targets hold and drop only calls of their own origins', { tags: [ATTACK] }, async () => {
  const silentOnes = await Promise.all([1, 2, 3, 4].map(() => startReceiver(() => undefined)));
  onTestFinished(async () => {
    for (const one of silentOnes) await one.close();
  });
  const stuck = await Promise.all(silentOnes.map(({ url }, n) => put(`stuck-${n}`, cancelBy(url))));
  const fine = await put('fine', cancelBy(`${receiver.url}/fine`));
  const made = canceller(store.database, { maxWaiting: 40, maxWaitingPerLane: 10 });
  for (const one of stuck) made.add(Array.from({ length: 24 }, (_, n) => runOf(one, n)));
  await Promise.all(silentOnes.map((one) => one.arrived(4)));
  // Of each, four are under way and ten wait.
  const dropped = await cancelledOf(4 * 10);
  expect(new Set(dropped.map(({ error }) => error))).toEqual(
    new Set(['too many others of its origin wait to be told']),
  );
  made.add(Array.from({ length: 8 }, (_, n) => runOf(fine, n)));
  await until(() => cancelled.filter(({ accepted }) => accepted).length === 8 || null);
  expect(receiver.arrivals).toHaveLength(8);
});

it('stopping ends the call under way and begins no other', async () => {
  const stuck = await put('stuck', cancelBy(silent.url));
  const made = canceller();
  made.add(Array.from({ length: 6 }, (_, n) => runOf(stuck, n)));
  await silent.arrived(4);
  await made.stop();
  expect(cancelled).toHaveLength(6);
  expect(cancelled.every((event) => !event.accepted && event.error?.startsWith('firelock stopped before'))).toBe(true);
  made.add([runOf(stuck, 7)]);
  await cancelledOf(7);
  await made.stop();
  expect(silent.arrivals).toHaveLength(4);
});

it('a definition that cannot be read is reported, and nothing is sent', async () => {
  const schedule = await put('job', cancelBy(`${receiver.url}/job`));
  const away = openDatabase('postgres://nobody@127.0.0.1:1/none', 1);
  onTestFinished(() => away.close());
  canceller(away).add([runOf(schedule)]);
  expect(await cancelledOf(1)).toMatchObject([
    { accepted: false, error: expect.stringContaining('ECONNREFUSED') as string },
  ]);
  expect(receiver.arrivals).toEqual([]);
});
