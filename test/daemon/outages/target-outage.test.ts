// @module-tag long
import postgres from 'postgres';
import { expect, it, onTestFinished } from 'vitest';
import { createMigratedDatabase } from '../../support/postgres/migrated-database.ts';
import { type Daemon, readyDaemon } from '../../support/daemon.ts';
import { EVERY_SECOND, type RunRow, endedRuns, expectArrived, expectEverySecondPlanned } from '../../support/fires.ts';
import { type Answer, type Receiver, startReceiver } from '../../support/receiver.ts';

/** Few slots: what hangs wants more of them than there are. */
const FEW_SLOTS = { FIRELOCK_DISPATCH_CONCURRENCY: '12', FIRELOCK_DISPATCH_PER_HOST: '4' };

const ANSWERS: Record<string, Answer> = {
  good: (_, response) => response.end('{}'),
  hanging: () => undefined,
  dripping: (_, response) => {
    response.writeHead(200);
    const drip = setInterval(() => response.write('.'), 50);
    response.on('close', () => clearInterval(drip));
  },
  losing: ({ body }, response) => {
    if (body.attempt === 1) response.socket?.destroy();
    else response.end('{}');
  },
};

/** What the history of a run to each kind of target says. */
const EXPECTED: Record<string, object> = {
  good: { status: 'succeeded', attempts: 1, failures: 0, attemptLog: [{ outcome: 'accepted' }] },
  down: {
    status: 'failed',
    attempts: 2,
    failures: 2,
    error: { kind: 'network', message: expect.stringContaining('ECONNREFUSED') as string },
    attemptLog: [
      { outcome: 'transient', error: { kind: 'network' } },
      { outcome: 'transient', error: { kind: 'network' } },
    ],
  },
  hanging: {
    status: 'failed',
    attempts: 2,
    failures: 2,
    error: { kind: 'timeout' },
    attemptLog: [
      { outcome: 'unknown', error: { kind: 'timeout' } },
      { outcome: 'unknown', error: { kind: 'timeout' } },
    ],
  },
  dripping: {
    status: 'failed',
    attempts: 2,
    failures: 2,
    error: { kind: 'timeout' },
    attemptLog: [
      { outcome: 'unknown', error: { kind: 'timeout' } },
      { outcome: 'unknown', error: { kind: 'timeout' } },
    ],
  },
  losing: {
    status: 'succeeded',
    attempts: 2,
    failures: 1,
    error: null,
    attemptLog: [{ outcome: 'unknown', error: { kind: 'network' } }, { outcome: 'accepted' }],
  },
};

it('targets that are down, hang, drip or lose their answers delay only themselves, and history says what each did', async () => {
  const database = await createMigratedDatabase();
  onTestFinished(() => database.drop());
  const sql = postgres(database.url, { max: 1 });
  onTestFinished(() => sql.end());
  const receivers: Record<string, Receiver> = {};
  for (const [kind, answer] of Object.entries(ANSWERS)) receivers[kind] = await receive(answer);
  const down = await startReceiver();
  await down.close();

  const daemon = await readyDaemon(database.url, FEW_SLOTS);
  for (const [kind, { url }] of Object.entries({ ...receivers, down })) {
    for (const index of [0, 1, 2]) await put(daemon, `${kind}-${index}`, url);
  }
  await receivers['good']?.arrived(18);
  const behind = await sql`SELECT FROM all_runs WHERE status = 'pending' AND schedule_id LIKE 'hanging-%'`;
  expect(behind.length).toBeGreaterThan(0);
  for (const kind of Object.keys(EXPECTED)) {
    for (const index of [0, 1, 2]) await daemon.call('PATCH', `/api/v1/schedules/${kind}-${index}`, { enabled: false });
  }

  const runs = await endedRuns(sql);
  expect(await expectEverySecondPlanned(sql)).toBe(runs.length);
  const byKind = Map.groupBy(runs, ({ schedule_id }) => schedule_id.split('-')[0] ?? '');
  expect([...byKind.keys()].sort()).toEqual(Object.keys(EXPECTED).sort());
  for (const [kind, own] of byKind) await expectOutcome(daemon, kind, own, receivers[kind]);
  daemon.signal('SIGTERM');
  expect(await daemon.exited).toBe(0);
});

async function receive(answer: Answer): Promise<Receiver> {
  const receiver = await startReceiver(answer);
  onTestFinished(() => receiver.close());
  return receiver;
}

async function put(daemon: Daemon, id: string, url: string): Promise<void> {
  const answer = await daemon.call('PUT', `/api/v1/schedules/${id}`, {
    cron: EVERY_SECOND,
    target: { type: 'http', url },
    timeoutSeconds: 1,
    retry: { maxAttempts: 2, minBackoffSeconds: 1, maxBackoffSeconds: 1 },
  });
  expect(answer.status).toBe(201);
}

async function expectOutcome(
  daemon: Daemon,
  kind: string,
  runs: readonly RunRow[],
  receiver: Receiver | undefined,
): Promise<void> {
  if (receiver) expectArrived(receiver, runs);
  for (const { id } of runs) {
    const { body } = await daemon.call('GET', `/api/v1/runs/${id}`);
    expect(body).toMatchObject(EXPECTED[kind] ?? {});
  }
}
