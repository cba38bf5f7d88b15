// @module-tag attack
import { expect, test, describe } from 'vitest';
import { newToken } from '../access/support.ts';
import { SCHEDULE, faultPaths, quietApi, itemsOf, idsOf } from '../api.ts';

const billing = newToken('billing', 'operator', null, ['billing.']);
const ops = newToken('ops', 'operator', null, ['ops.', 'night-']);
const admin = newToken('admin', 'admin');
const worker = newToken('billing-worker', 'worker', null, ['billing.']);
const many = newToken('many', 'viewer', null, ['m.']);
const api = quietApi({ apiTokens: [billing, worker, ops, many, admin].map(({ known }) => known) });

type Caller = typeof admin;
const as = (caller: Caller, method: string, path: string, body?: unknown) =>
  api.call(method, `/api/v1${path}`, body, caller.headers);
const HTTP = { type: 'http', url: 'http://127.0.0.1:9/' };

let names = 0;
const fresh = (prefix: string) => `${prefix}n${(names += 1)}`;

async function schedule(id: string): Promise<string> {
  const made = await as(admin, 'PUT', `/schedules/${id}`, { ...SCHEDULE, labels: { team: 'x' } });
  expect([201, id]).toEqual([made.status, id]);
  return id;
}

async function fired(scheduleId: string): Promise<string> {
  const answer = await as(admin, 'POST', `/schedules/${scheduleId}/fire`);
  expect(answer.status).toBe(202);
  return answer.body['id'] as unknown as string;
}

async function oneOff(caller: Caller, more: object): Promise<string> {
  const answer = await as(caller, 'POST', '/runs', { target: HTTP, ...more });
  expect([answer.status, answer.text]).toEqual([201, expect.any(String)]);
  return answer.body['id'] as unknown as string;
}

/** Each kind of run, of both teams and of all. */
async function runsOfTeams() {
  const [mine, foreign, shared] = [
    await schedule(fresh('billing.')),
    await schedule(fresh('ops.')),
    await schedule(fresh('shared.')),
  ];
  const [myKey, foreignKey] = [fresh('billing.'), fresh('ops.')];
  return {
    names: { mine, foreign, shared, myKey, foreignKey },
    mine: [await fired(mine), await oneOff(admin, { key: myKey })],
    foreign: [await fired(foreign), await oneOff(admin, { key: foreignKey }), await oneOff(admin, {})],
    shared: [await fired(shared)],
  };
}

describe('figures', () => {
  const figures = async (caller: Caller, path: string) => {
    const { status, body } = await as(caller, 'GET', path);
    return [status, body['totalRuns'], body['cancelledRuns']];
  };

  async function firedSchedule(id: string, fires: number): Promise<void> {
    await as(admin, 'PUT', `/schedules/${id}`, SCHEDULE);
    for (let fire = 0; fire < fires; fire += 1) await as(admin, 'POST', `/schedules/${id}/fire`);
  }

  test('the figures are of the runs that a scope sees: those of its schedules, and its one-off runs', async () => {
    await firedSchedule('billing.a', 2);
    await firedSchedule('ops.a', 3);
    await firedSchedule('shared.a', 1);
    for (const key of ['billing.once', 'shared.once', 'ops.once', null]) {
      const { body } = await as(admin, 'POST', '/runs', {
        target: { type: 'http', url: 'http://127.0.0.1:9/' },
        key,
      });
      await as(admin, 'POST', `/runs/${body['id'] as unknown as string}/cancel`);
    }
    expect(await figures(admin, '/stats')).toEqual([200, 10, 4]);
    expect(await figures(billing, '/stats')).toEqual([200, 5, 2]);
    expect(await figures(billing, '/stats?to=2000-01-01T00:00:00Z')).toEqual([200, 0, 0]);
    expect(await figures(billing, '/schedules/billing.a/stats')).toEqual([200, 2, 0]);
    expect(await figures(billing, '/schedules/shared.a/stats')).toEqual([200, 1, 0]);
    expect((await figures(billing, '/schedules/ops.a/stats'))[0]).toBe(404);
  });

  test('and of a scope with very many schedules', async () => {
    await as(admin, 'POST', '/schedules/batch', {
      items: Array.from({ length: 120 }, (_, n) => ({ id: `m.${n}`, ...SCHEDULE })),
    });
    for (const id of ['m.0', 'm.119']) await firedSchedule(id, 2);
    await firedSchedule('n.0', 1);
    expect(await figures(many, '/stats')).toEqual([200, 4 + 1 + 1, 1]);
  });
});

describe('queues', () => {
  const claim = (caller: Caller, queue: string, more: object = {}) =>
    as(caller, 'POST', `/queues/${queue}/claim`, { workerId: 'w', max: 10, ...more });

  async function record(queue: string, key: string, more: object = {}): Promise<string> {
    const made = await as(admin, 'POST', '/runs', { target: { type: 'pull', queue }, key, ...more });
    expect([made.status, made.text]).toEqual([201, expect.any(String)]);
    return made.body['id'] as unknown as string;
  }

  test('a scope sees its queues whole, and of shared ones its own runs and who works there', async () => {
    await record('billing.q', 'billing.1');
    await record('billing.q', 'ops.1');
    await record('shared.q', 'billing.2');
    for (const key of ['ops.2', 'ops.3']) await record('shared.q', key);
    await record('shared.of-ops', 'ops.4');
    await record('ops.q', 'billing.3');
    await claim(admin, 'shared.idle');
    await claim(admin, 'ops.idle');
    await api.pullQueues.claim({
      ...{ queue: 'shared.q', workerId: 'w', max: 1, leaseSeconds: 60, waitSeconds: 0 },
      ...{ scope: null, signal: new AbortController().signal },
    });
    const listed = async (caller: Caller) =>
      itemsOf(await as(caller, 'GET', '/queues')).map(({ queue, pending, running, workers }) => [
        queue,
        Number(pending) + Number(running),
        workers,
      ]);
    await expect
      .poll(() => listed(billing))
      .toEqual([
        ['billing.q', 2, 0],
        ['shared.idle', 0, 1],
        ['shared.q', 1, 1],
      ]);
    expect(await listed(ops)).toEqual([
      ['ops.idle', 0, 1],
      ['ops.q', 1, 0],
      ['shared.idle', 0, 1],
      ['shared.of-ops', 1, 0],
      ['shared.q', 2, 1],
    ]);
    expect(await listed(admin)).toHaveLength(6);
  });

  test('a worker claims from its queues alone', async () => {
    await record('ops.w', 'billing.w');
    await record('shared.w', 'billing.w2');
    expect((await claim(worker, 'ops.w')).status).toBe(404);
    expect((await claim(worker, 'shared.w')).status).toBe(403);
    expect(itemsOf(await claim(admin, 'ops.w'))).toHaveLength(1);
  });

  test('a claimed run carries its own dependencies, and of its dependents those that the scope sees', async () => {
    const first = await record('ops.first', 'ops.first');
    await claim(admin, 'ops.first');
    const ended = { status: 'succeeded', result: 'of ops', workerId: 'w' };
    expect((await as(admin, 'POST', `/runs/${first}/complete`, ended)).status).toBe(200);
    const id = await record('billing.claimed', 'ops.claimed', { dependsOn: [first] });
    const dependents = [
      await record('ops.next', 'billing.next', { dependsOn: [id] }),
      await record('billing.next', 'ops.next', { dependsOn: [id] }),
    ];
    const plain = await record('billing.claimed', 'billing.plain');
    const [run, other] = itemsOf(await claim(worker, 'billing.claimed'));
    expect(run).toMatchObject({
      ...{ id, dependsOn: [first], dependents: [dependents[0]] },
      dependencies: [{ runId: first, status: 'succeeded' }],
    });
    expect(other).toMatchObject({ id: plain, dependents: [] });
    // A run of others in its queue is the worker's to report on, and not its to read.
    const beaten = await as(worker, 'POST', `/runs/${id}/heartbeat`, { workerId: 'w' });
    expect([beaten.status, beaten.body['dependents']]).toEqual([200, [dependents[0]]]);
    const whole = await as(admin, 'GET', `/runs/${id}`);
    expect(whole.body['dependents']).toEqual([...dependents].sort());
    expect((await as(billing, 'GET', `/runs/${id}`)).status).toBe(404);
    expect((await as(worker, 'POST', `/runs/${id}/complete`, ended)).status).toBe(200);
    expect((await as(worker, 'POST', `/runs/${dependents[1] ?? ''}/heartbeat`, {})).status).toBe(409);
    expect((await as(worker, 'POST', `/runs/${first}/complete`, ended)).status).toBe(404);
  });
});

test('a list has the runs of the scope and of what is shared, whatever the filter', async () => {
  const runs = await runsOfTeams();
  const seen = [...runs.mine, ...runs.shared].sort();
  const hidden = new Set(runs.foreign);
  for (const filter of ['', '&status=pending', '&trigger=manual,api', '&label=team:x', '&from=2000-01-01T00:00:00Z']) {
    const answer = await as(billing, 'GET', `/runs?limit=500${filter}`);
    expect(answer.status).toBe(200);
    expect(idsOf(answer).filter((id) => hidden.has(id))).toEqual([]);
    const ofSchedules = seen.filter((id) => id !== runs.mine[1]);
    const wanted = filter.includes('label') ? ofSchedules : seen;
    expect(
      idsOf(answer)
        .filter((id) => seen.includes(id))
        .sort(),
    ).toEqual(wanted);
  }
  const { mine, foreign, shared, myKey, foreignKey } = runs.names;
  const listed = async (query: string) => idsOf(await as(billing, 'GET', `/runs?${query}`));
  expect(await listed(`scheduleId=${mine}`)).toEqual([runs.mine[0]]);
  expect(await listed(`scheduleId=${shared}`)).toEqual(runs.shared);
  expect(await listed(`key=${myKey}`)).toEqual([runs.mine[1]]);
  const unknown = await as(billing, 'GET', '/runs?scheduleId=billing.none');
  expect(unknown.body).toEqual((await as(billing, 'GET', `/runs?scheduleId=${foreign}`)).body);
  expect(await listed(`key=${foreignKey}`)).toEqual([]);
  expect((await as(admin, 'GET', `/runs?key=${foreignKey}`)).body['items']).toHaveLength(1);
});

test('one run answers the runs that it names, without those of others', async () => {
  const { mine, shared, foreign } = await runsOfTeams();
  const [first = '', second = '', third = ''] = [mine[0], shared[0], foreign[0]];
  const dependent = await oneOff(admin, { key: fresh('billing.'), dependsOn: [third, first, second] });
  const other = await oneOff(admin, { key: fresh('ops.'), dependsOn: [first, second] });
  const seen = async (caller: Caller, id: string) => (await as(caller, 'GET', `/runs/${id}`)).body;
  expect(await seen(billing, dependent)).toMatchObject({ dependsOn: [first, second] });
  expect(await seen(admin, dependent)).toMatchObject({ dependsOn: [third, first, second] });
  expect(await seen(billing, second)).toMatchObject({ dependents: [dependent] });
  expect(await seen(ops, second)).toMatchObject({ dependents: [other] });
  const listed = itemsOf(await as(billing, 'GET', '/runs?limit=500')).find(
    ({ id }) => (id as unknown as string) === first,
  );
  expect(listed).toMatchObject({ dependents: [dependent] });
  const cancelled = await as(billing, 'POST', `/runs/${first}/cancel`);
  expect(cancelled.body).toMatchObject({ status: 'cancelled', dependents: [dependent] });

  await api.sql`UPDATE runs SET parent_run_id = ${third}, trigger = 'after' WHERE id = ${second}`;
  expect(await seen(billing, second)).toMatchObject({ parentRunId: null });
  expect(await seen(ops, second)).toMatchObject({ parentRunId: third });
});

test('a one-off run of a caller with a scope needs a key of this scope', async () => {
  const rule = { path: '/key', message: 'must begin with a prefix of your scope: ops.|night-' };
  for (const key of [undefined, null, 'billing.x', 'shared.x', 'op']) {
    const answer = await as(ops, 'POST', '/runs', { target: HTTP, key });
    expect([answer.status, answer.body['errors']]).toEqual([422, [rule]]);
  }
  await oneOff(ops, { key: fresh('night-') });
  const [good, bad] = [fresh('ops.'), fresh('billing.')];
  const batch = await as(ops, 'POST', '/runs/batch', {
    items: [
      { ref: 'a', target: HTTP, key: good },
      { ref: 'b', target: HTTP, key: bad },
      { ref: 'c', target: HTTP },
    ],
  });
  expect([batch.status, faultPaths(batch)]).toEqual([422, ['/items/1/key', '/items/2/key']]);
  expect(idsOf(await as(admin, 'GET', `/runs?key=${good}`))).toEqual([]);
});

test('what a one-off run names of others is unknown: runs, limits, connections; and queues', async () => {
  const { mine, shared, foreign } = await runsOfTeams();
  const limits = ['ops.slow', 'billing.slow', 'shared.slow'];
  for (const id of limits) expect((await as(admin, 'PUT', `/limits/${id}`, { maxRunning: 1 })).status).toBe(201);
  for (const id of ['ops.crm', 'billing.crm'])
    expect((await as(admin, 'PUT', `/connections/${id}`, { url: 'http://127.0.0.1:9' })).status).toBe(201);
  const make = (more: object) => as(billing, 'POST', '/runs', { target: HTTP, key: fresh('billing.'), ...more });
  const faults = async (more: object) => (await make(more)).body['errors'];
  const run = (id = '') => ({ path: '/dependsOn/1', message: `names a run that does not exist: ${id}` });
  const unknown = '019b76da-a800-7000-8000-000000000000';
  expect(await faults({ dependsOn: [mine[0], foreign[1]] })).toEqual([run(foreign[1])]);
  expect(await faults({ dependsOn: [mine[0], unknown] })).toEqual([run(unknown)]);
  expect((await make({ dependsOn: [...mine, ...shared] })).status).toBe(201);
  for (const id of ['ops.slow', 'ops.none'])
    expect(await faults({ limit: id })).toEqual([
      { path: '/limit', message: `names a limit that does not exist: ${id}` },
    ]);
  for (const id of ['billing.slow', 'shared.slow']) expect((await make({ limit: id })).status).toBe(201);
  const to = (connection: string) => ({ target: { type: 'http', connection, url: '/' } });
  for (const id of ['ops.crm', 'ops.none'])
    expect(await faults(to(id))).toEqual([
      { path: '/target/connection', message: `names a connection that does not exist: ${id}` },
    ]);
  expect((await make(to('billing.crm'))).status).toBe(201);
  const on = (queue: string) => ({ target: { type: 'pull', queue } });
  expect(await faults(on('ops.work'))).toEqual([
    { path: '/target/queue', message: 'is outside your scope (billing.)' },
  ]);
  for (const queue of ['billing.work', 'shared.work']) expect((await make(on(queue))).status).toBe(201);
});
