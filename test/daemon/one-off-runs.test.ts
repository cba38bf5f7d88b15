import postgres from 'postgres';
import { expect, test } from 'vitest';
import { eachTest, databaseOfTest, receiverOfTest } from '../support/of-test.ts';
import { type DaemonHere, daemonHere } from '../support/daemon-here.ts';
import { until } from '../support/until.ts';
import { LONG } from '../support/runner/long.ts';

interface Run {
  id: string;
  status: string;
  reason: string | null;
  attempts: number;
  error: { kind: string; message: string } | null;
  result: { statusCode: number | null; body: string } | null;
  progress: number | null;
}

const database = eachTest(databaseOfTest);
const receiver = eachTest(() =>
  receiverOfTest(({ path }, response) => {
    response.statusCode = path.startsWith('/refuse') ? 400 : 200;
    response.end(`{"from":"${path}"}`);
  }),
);

const http = (path: string, more: object = {}) => ({ type: 'http', url: receiver.url + path, ...more });

async function post<T>(daemon: DaemonHere, path: string, body?: unknown, status = 200): Promise<T> {
  const answer = await daemon.call('POST', `/api/v1${path}`, body);
  expect([path, answer.status, answer.body]).toEqual([path, status, expect.anything()]);
  return answer.body as T;
}

async function runOf(daemon: DaemonHere, id: string | undefined): Promise<Run> {
  return (await daemon.call('GET', `/api/v1/runs/${id ?? ''}`)).body as Run;
}

const inStatus = (daemon: DaemonHere, id: string | undefined, status: string) =>
  until(async () => {
    const run = await runOf(daemon, id);
    return run.status === status ? run : null;
  });

async function claimed(daemon: DaemonHere, queue: string, workerId: string): Promise<Run & { dependencies: unknown }> {
  const { items } = await post<{ items: (Run & { dependencies: unknown })[] }>(daemon, `/queues/${queue}/claim`, {
    workerId,
    leaseSeconds: 60,
    waitSeconds: 30,
  });
  const [run] = items;
  if (!run) throw new Error('nothing was there to claim');
  return run;
}

test(
  'runs that depend on each other follow the outcomes of the others, sent, called back and pulled, over two daemons',
  { tags: [LONG] },
  async () => {
    const [one, two] = await Promise.all([daemonHere(database.url), daemonHere(database.url)]);
    const { items } = await post<{ items: { ref: string; id: string }[] }>(
      one,
      '/runs/batch',
      {
        items: [
          { ref: 'tell', target: http('/tell'), dependsOn: ['review', 'extract'] },
          {
            ref: 'review',
            target: { type: 'pull', queue: 'reviews' },
            dependsOn: ['build'],
            payload: { n: 1 },
          },
          { ref: 'build', target: http('/build'), completion: 'callback', dependsOn: ['extract'] },
          { ref: 'extract', target: http('/extract'), payload: { day: 1.5 } },
          { ref: 'refused', target: http('/refuse') },
          { ref: 'never', target: http('/never'), dependsOn: ['extract', 'refused'] },
          { ref: 'neither', target: http('/neither'), dependsOn: ['never'] },
          { ref: 'tidy', target: http('/tidy'), dependsOn: ['never', 'extract'], onDependencyFailure: 'run' },
        ],
      },
      201,
    );
    const id = Object.fromEntries(items.map((item) => [item.ref, item.id]));

    await inStatus(two, id['build'], 'running');
    expect((await runOf(two, id['review'])).status).toBe('waiting');
    await post(two, `/runs/${id['build'] ?? ''}/complete`, { status: 'succeeded', result: { built: 2.5 } });

    const review = await claimed(two, 'reviews', 'w-1');
    expect(review).toMatchObject({ id: id['review'], payload: { n: 1 }, attempts: 1, workerId: 'w-1' });
    expect(review.dependencies).toEqual([
      {
        runId: id['build'],
        status: 'succeeded',
        error: null,
        // Reported with the end: it is not what the handoff was answered with.
        result: { statusCode: null, body: '{"built":2.5}' },
      },
    ]);
    const word = { attempt: review.attempts, workerId: 'w-1' };
    const beat = await post<Run>(one, `/runs/${review.id}/heartbeat`, { ...word, progress: 0.5 });
    expect(beat).toMatchObject({ status: 'running', progress: 0.5 });
    await post(two, `/runs/${review.id}/complete`, { ...word, status: 'succeeded', result: 'good' });

    await inStatus(one, id['tell'], 'succeeded');
    await inStatus(one, id['tidy'], 'succeeded');
    const dependency = { kind: 'dependency' };
    for (const ref of ['never', 'neither'])
      expect(await inStatus(two, id[ref], 'failed')).toMatchObject({ attempts: 0, error: dependency });

    const bodyOf = (path: string) => receiver.arrivals.filter((arrival) => arrival.path === path);
    expect(receiver.arrivals.map(({ path }) => path).sort()).toEqual(
      ['/build', '/extract', '/refuse', '/tell', '/tidy'].sort(),
    );
    expect(bodyOf('/extract')[0]?.body).toMatchObject({
      runId: id['extract'],
      runName: null,
      scheduleId: null,
      trigger: 'api',
      attempt: 1,
      payload: { day: 1.5 },
    });
    expect(bodyOf('/tell')[0]?.body).toMatchObject({
      dependencies: [
        { runId: id['review'], status: 'succeeded', error: null, result: { statusCode: null, body: 'good' } },
        {
          runId: id['extract'],
          status: 'succeeded',
          result: { statusCode: 200, body: '{"from":"/extract"}' },
        },
      ],
    });
    expect(bodyOf('/tidy')[0]?.body).toMatchObject({
      dependencies: [
        { runId: id['never'], status: 'failed', error: dependency },
        { runId: id['extract'], status: 'succeeded' },
      ],
    });
    expect(bodyOf('/extract')[0]?.headers).toMatchObject({ 'ce-source': '/runs', 'ce-id': id['extract'] });
  },
);

test('cancelling a run that its target works on calls the target and fails its dependents, and a retry does it again', async () => {
  const daemon = await daemonHere(database.url);
  const target = http('/work', { cancel: { url: `${receiver.url}/stop?run={{runId}}` } });
  const work = await post<Run>(daemon, '/runs', { target, completion: 'callback' }, 201);
  const next = await post<Run>(daemon, '/runs', { target: http('/next'), dependsOn: [work.id] }, 201);
  await inStatus(daemon, work.id, 'running');

  expect(await post<Run>(daemon, `/runs/${work.id}/cancel`)).toMatchObject({ status: 'cancelled' });
  await post<Run>(daemon, `/runs/${work.id}/cancel`);
  await post(daemon, `/runs/${work.id}/complete`, { status: 'succeeded' }, 409);
  await receiver.arrived(2);
  expect(await inStatus(daemon, next.id, 'failed')).toMatchObject({ error: { kind: 'dependency' } });

  const again = await post<Run>(daemon, `/runs/${work.id}/retry`);
  expect(again).toMatchObject({ status: 'pending', attempts: 1 });
  await inStatus(daemon, work.id, 'running');
  await post(daemon, `/runs/${work.id}/complete`, { status: 'failed', error: 'no luck', attempt: 1 }, 409);
  const end = await post<Run>(daemon, `/runs/${work.id}/complete`, {
    status: 'failed',
    error: 'no luck',
    attempt: 2,
  });
  expect(end).toMatchObject({ status: 'failed', error: { kind: 'reported', message: 'no luck' } });
  expect(receiver.arrivals.map(({ path }) => path)).toEqual(['/work', `/stop?run=${work.id}`, '/work']);
  expect((await runOf(daemon, next.id)).status).toBe('failed');
});

test('a run for a future moment is sent then, once, and a worker’s report ends no other run', async () => {
  const daemon = await daemonHere(database.url);
  const runAt = new Date(Date.now() + 3_600_000).toISOString();
  const key = 'later';
  const later = await post<Run>(daemon, '/runs', { target: http('/later'), runAt, key }, 201);
  expect(await post<Run>(daemon, '/runs', { target: http('/later'), runAt, key })).toMatchObject({
    id: later.id,
  });
  expect(later).toMatchObject({ status: 'pending', nextAttemptAt: runAt });
  // What was asked for after it is sent before it.
  const soon = await post<Run>(daemon, '/runs', { target: http('/soon') }, 201);
  await inStatus(daemon, soon.id, 'succeeded');
  const sql = postgres(database.url, { max: 1 });
  await sql`UPDATE runs SET due_at = clock_timestamp() WHERE id = ${later.id}`;
  await sql.end();
  await inStatus(daemon, later.id, 'succeeded');
  expect(receiver.arrivals.map(({ path }) => path)).toEqual(['/soon', '/later']);
  expect(receiver.arrivals[1]?.body).toMatchObject({ runId: later.id, scheduledFor: runAt });

  const { id } = await post<Run>(daemon, '/runs', { target: { type: 'pull', queue: 'q' } }, 201);
  expect((await claimed(daemon, 'q', 'w-1')).id).toBe(id);
  await post(daemon, `/runs/${id}/complete`, { status: 'succeeded', workerId: 'w-2' }, 409);
  await post(daemon, `/runs/${id}/complete`, { status: 'succeeded', workerId: 'w-1' });
  expect(receiver.arrivals).toHaveLength(2);
});
