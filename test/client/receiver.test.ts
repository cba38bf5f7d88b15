import type { RequestListener } from 'node:http';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Problem, createClient } from '../../clients/typescript/src/index.ts';
import {
  type HandedRun,
  Later,
  type ReceiverOptions,
  Refused,
  createReceiver,
} from '../../clients/typescript/src/receiver/index.ts';
import { readyDaemon } from '../support/daemon.ts';
import { type AnsweredRun, runOnce, sharedDaemon, tokenOf } from '../examples/program.ts';
import { serveHttp } from '../support/loopback.ts';
import { createMigratedDatabase } from '../support/postgres/migrated-database.ts';
import { LONG } from '../support/runner/long.ts';
import { SECRET_KEYS } from '../support/secrets.ts';
import { runIdOf, secretOf, signedHandoff } from '../support/signed.ts';
import { until } from '../support/until.ts';

const [FIRST, SECOND, OTHER] = [secretOf(1), secretOf(2), secretOf(3)];
const shared = sharedDaemon({ FIRELOCK_SECRET_KEYS: SECRET_KEYS });

/** Serves HTTP until the end of the test; answers its URL. */
async function serve(handler: RequestListener): Promise<string> {
  const server = await serveHttp(handler);
  onTestFinished(() => server.close());
  return `${server.url}/`;
}

interface Worked {
  options: ReceiverOptions;
  runs: HandedRun[];
}

/** Remembers what it worked on, and what went wrong is no news. */
function working(more: Partial<ReceiverOptions> = {}): Worked {
  const runs: HandedRun[] = [];
  const work: ReceiverOptions['work'] = async (run, job) => {
    runs.push(run);
    return (await more.work?.(run, job)) ?? { executionId: `job-${run.runId}` };
  };
  return { runs, options: { secrets: [FIRST, SECOND], onError: () => undefined, ...more, work } };
}

type Api = Pick<typeof shared, 'call'>;

/** A one-off run that is tried again after a second. */
async function createRun(daemon: Api, url: string, more: object = {}, secret = SECOND): Promise<string> {
  const target = { type: 'http', url, secret };
  const body = { target, retry: { minBackoffSeconds: 1 }, ...more };
  const answer = await daemon.call('POST', '/api/v1/runs', body);
  expect(answer.status).toBe(201);
  return (answer.body as AnsweredRun).id;
}

const hasEnded = ({ status }: AnsweredRun) => status === 'succeeded' || status === 'failed';

describe('runs of a daemon', () => {
  test('a run whose answer is lost comes again, and is not worked on again', async () => {
    const { options, runs } = working();
    const { node } = createReceiver(options);
    let isLost = true;
    const url = await serve((request, response) => {
      if (isLost) response.writeHead = () => request.socket.destroy() as never;
      isLost = false;
      node(request, response);
    });
    const id = await createRun(shared, url, { payload: { amount: 1.5 } });
    const run = await runOnce(shared, id, hasEnded);
    expect(run).toMatchObject({ status: 'succeeded', attempts: 2, executionId: `job-${id}` });
    expect(runs).toHaveLength(1);
    expect(runs[0]).toMatchObject({ runId: id, attempt: 1, scheduleId: null, dependencies: [] });
    expect(runs[0]?.payload.text).toBe('{"amount":1.5}');
  });

  test('what is signed with another secret is not worked on, and fails', async () => {
    const { options, runs } = working();
    const id = await createRun(shared, await serve(createReceiver(options).node), {}, OTHER);
    const run = await runOnce(shared, id, hasEnded);
    expect(run).toMatchObject({ status: 'failed', attempts: 1, result: { statusCode: 401 } });
    expect(runs).toEqual([]);
  });

  // Others wait until they may be sure that an instance is dead.
  test(
    'a run whose daemon is killed in the middle comes again, and both are one piece of work',
    { tags: [LONG] },
    async () => {
      const database = await createMigratedDatabase();
      onTestFinished(() => database.drop());
      const quick = {
        FIRELOCK_SECRET_KEYS: SECRET_KEYS,
        FIRELOCK_HEARTBEAT_INTERVAL_SECONDS: '1',
        FIRELOCK_INSTANCE_TTL_SECONDS: '4',
        FIRELOCK_RECOVERY_INTERVAL_SECONDS: '1',
      };
      const killed = await readyDaemon(database.url, quick);
      let finish: (result: object) => void = () => undefined;
      const { options, runs } = working({ work: () => new Promise<object>((resolve) => (finish = resolve)) });
      const { node } = createReceiver(options);
      let arrivals = 0;
      const url = await serve((request, response) => {
        arrivals += 1;
        node(request, response);
      });
      const id = await createRun(killed, url);
      await until(() => (runs.length === 1 ? true : null));
      killed.signal('SIGKILL');
      await killed.exited;
      const other = await readyDaemon(database.url, quick);
      await until(() => (arrivals === 2 ? true : null));
      finish({ executionId: 'once' });
      const run = await runOnce(other, id, hasEnded);
      expect(run).toMatchObject({ status: 'succeeded', attempts: 2, recoveries: 1, executionId: 'once' });
      expect(runs).toHaveLength(1);
    },
  );

  describe('by callback', () => {
    const callback = () => ({
      firelock: createClient({ url: shared.url, token: tokenOf('worker') }),
      heartbeatSeconds: 0.05,
    });
    const more = { completion: 'callback', completionTimeoutSeconds: 60 };

    test('the work may go on, tells how far it is, and its end is reported', async () => {
      let finish: (result: object) => void = () => undefined;
      const { options } = working({
        callback: callback(),
        work: (_, { progress }) => {
          progress(0.5);
          return new Promise<object>((resolve) => (finish = resolve));
        },
      });
      const id = await createRun(shared, await serve(createReceiver(options).node), more);
      await runOnce(shared, id, ({ status, progress }) => status === 'running' && progress === 0.5);
      finish({ rows: 12345678901234567890n });
      const run = await runOnce(shared, id, hasEnded);
      expect(run).toMatchObject({ status: 'succeeded', result: { body: '{"rows":12345678901234567890}' } });
    });

    test('what it throws ends the run as failed; when the run is opened again it is worked on again', async () => {
      let isWrong = true;
      const { options, runs } = working({
        callback: callback(),
        work: () => (isWrong ? Promise.reject(new Error('wrong')) : {}),
      });
      const id = await createRun(shared, await serve(createReceiver(options).node), more);
      const failed = await runOnce(shared, id, hasEnded);
      expect(failed).toMatchObject({ status: 'failed', error: { kind: 'reported', message: 'wrong' } });
      isWrong = false;
      expect((await shared.call('POST', `/api/v1/runs/${id}/retry`)).status).toBe(200);
      const run = await runOnce(shared, id, ({ status }) => status === 'succeeded');
      expect([run.attempts, runs.length]).toEqual([2, 2]);
    });

    test('after `Later` the run comes again, without waiting until it expires', async () => {
      const thrown = [new Later(1, 'not yet')];
      const { options, runs } = working({
        callback: callback(),
        work: () => {
          const error = thrown.shift();
          if (error) throw error;
          return {};
        },
      });
      const id = await createRun(shared, await serve(createReceiver(options).node), more);
      const run = await runOnce(shared, id, hasEnded);
      expect(run).toMatchObject({ status: 'succeeded', attempts: 2, failures: 1 });
      expect(runs).toHaveLength(2);
    });

    test('work that is cancelled is told so', async () => {
      const { options, runs } = working({
        callback: callback(),
        work: (_, { signal }) =>
          new Promise((_resolve, reject) => (signal.onabort = () => reject(new Error('stopped')))),
        onError: (error) => void errors.push(String(error)),
      });
      const errors: string[] = [];
      const id = await createRun(shared, await serve(createReceiver(options).node), more);
      await runOnce(shared, id, ({ status }) => status === 'running');
      expect((await shared.call('POST', `/api/v1/runs/${id}/cancel`)).status).toBe(200);
      await until(() => (errors.includes('Error: stopped') ? true : null));
      expect(runs).toHaveLength(1);
    });
  });
});

describe('handoffs, made without a daemon', () => {
  const runId = runIdOf();
  const handoff = (attempt: number, secret = FIRST) =>
    new Request('http://receiver/', signedHandoff({ runId, attempt, secret }));

  test('two attempts at once are one piece of work, and a lower one is refused', async () => {
    let finish: (result: object) => void = () => undefined;
    const { options, runs } = working({ work: () => new Promise<object>((resolve) => (finish = resolve)) });
    const receiver = createReceiver(options);
    const both = [receiver.fetch(handoff(1))];
    await until(() => (runs.length > 0 ? true : null));
    both.push(receiver.fetch(handoff(3, SECOND)));
    // Until the third has been seen, the second joins the work, and gets no answer before its end.
    const refused: number[] = [];
    await until(() => {
      void receiver.fetch(handoff(2)).then(({ status }) => void refused.push(status));
      return refused.length > 0 || null;
    });
    expect(new Set(refused)).toEqual(new Set([409]));
    finish({ n: 1 });
    for (const response of await Promise.all(both)) {
      expect([response.status, await response.text()]).toEqual([200, '{"n":1}']);
    }
    expect(await (await receiver.fetch(handoff(4))).text()).toBe('{"n":1}');
    expect(runs).toHaveLength(1);
  });

  test('what the work throws decides whether there is another attempt', async () => {
    const thrown = [new Refused('never'), new Later(7), new Error('broken')];
    const { options, runs } = working({
      work: () => {
        const error = thrown.shift();
        if (error) throw error;
        return {};
      },
    });
    const receiver = createReceiver(options);
    const answers: [number, string | null][] = [];
    for (const attempt of [1, 2, 3, 4]) {
      const { status, headers } = await receiver.fetch(handoff(attempt));
      answers.push([status, headers.get('retry-after')]);
    }
    expect(answers).toEqual([
      [422, null],
      [503, '7'],
      [500, null],
      [200, null],
    ]);
    expect(runs).toHaveLength(4);
  });

  test('what is no run, is signed wrong, is too long or comes by GET is not worked on', async () => {
    const { options, runs } = working({ maxBodyBytes: 1000 });
    const { fetch: receive, node } = createReceiver(options);
    const status = async (request: Request) => (await receive(request)).status;
    expect(await status(new Request('http://receiver/'))).toBe(405);
    expect(await status(handoff(1, OTHER))).toBe(401);
    const other = signedHandoff({ runId, attempt: 1, secret: FIRST });
    const headers = { ...other.headers, 'webhook-id': runIdOf() };
    expect(await status(new Request('http://receiver/', { ...other, headers }))).toBe(401);
    const unsigned = createReceiver({ ...options, secrets: null });
    const mixed = await unsigned.fetch(new Request('http://receiver/', { ...other, headers }));
    expect(mixed.status).toBe(400);
    const empty = await unsigned.fetch(new Request('http://receiver/', { method: 'POST', body: '{}' }));
    expect(empty.status).toBe(400);
    const long = signedHandoff({ runId, attempt: 1, secret: FIRST, payload: 'x'.repeat(100_000) });
    expect(await status(new Request('http://receiver/', long))).toBe(413);
    const response = await fetch(await serve(node), long);
    expect([response.status, response.headers.get('connection')]).toEqual([413, 'close']);
    expect(runs).toEqual([]);
  });

  test('while the store is away nothing is worked on, and firelock is to try again', async () => {
    const away = () => Promise.reject(new Error('away'));
    const { options, runs } = working({ store: { begin: away, finish: away, release: away } });
    expect((await createReceiver(options).fetch(handoff(1))).status).toBe(503);
    expect(runs).toEqual([]);
  });

  test('a report that was lost is made again when the run comes again, without the work', async () => {
    const reports: unknown[] = [];
    const gone = { status: 409, headers: new Headers(), body: null, text: 'another attempt is current' };
    const firelock = {
      heartbeatRun: () => Promise.reject(new Error('not asked for')),
      completeRun: ({ body }: { body: unknown }) => {
        reports.push(body);
        return reports.length === 1 ? Promise.reject(new Problem(gone)) : Promise.resolve({} as never);
      },
    };
    const { options, runs } = working({ callback: { firelock, heartbeatSeconds: 1000 }, work: () => [0.5] });
    const receiver = createReceiver(options);
    expect((await receiver.fetch(handoff(1))).status).toBe(202);
    await until(() => (reports.length === 1 ? true : null));
    expect((await receiver.fetch(handoff(2))).status).toBe(202);
    await until(() => (reports.length === 2 ? true : null));
    expect(JSON.stringify(reports)).toBe(
      '[{"status":"succeeded","result":[0.5],"attempt":1},{"status":"succeeded","result":[0.5],"attempt":2}]',
    );
    expect(runs).toHaveLength(1);
  });
});
