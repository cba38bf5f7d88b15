// @module-tag long
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import postgres from 'postgres';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { eachTest, databaseOfTest, receiverOfTest, sqlOfTest } from '../support/of-test.ts';
import { type Daemon, readyDaemon, spawnDaemon } from '../support/daemon.ts';
import { until } from '../support/until.ts';
import { LONG } from '../support/runner/long.ts';

interface RunRow {
  id: string;
  status: string;
  claimed_by: string | null;
  attempts: number;
  failures: number;
  lateness_ms: string | null;
}

const database = eachTest(databaseOfTest);
const receiver = eachTest(() =>
  receiverOfTest((_, response) => {
    response.on('close', () => {
      if (!response.writableFinished) reset += 1;
    });
    if (holding) owed.push(response);
    else response.end('{}');
  }),
);
const sql = eachTest(() => sqlOfTest(database.url));
/** What the receiver owes an answer, while it holds answers back. */
let owed: ServerResponse[];
let holding: boolean;
/** Handoffs whose socket was closed before they were answered. */
let reset: number;

beforeEach(() => {
  [owed, holding, reset] = [[], true, 0];
});

const start = (variables = {}): Promise<Daemon> => readyDaemon(database.url, variables);
const runs = () => sql<RunRow[]>`SELECT * FROM all_runs ORDER BY attempts, scheduled_for`;

/** A schedule that fires when told, and so many runs with its target. */
async function fire(daemon: Daemon, times: number): Promise<void> {
  const run = {
    target: { type: 'http', url: receiver.url },
    retry: { minBackoffSeconds: 1, maxBackoffSeconds: 1 },
  };
  expect((await daemon.call('PUT', '/api/v1/schedules/slow', { cron: '0 0 1 1 *', ...run })).status).toBe(201);
  if (times === 0) return;
  // In one call, so that one statement claims them: nothing is claimed ahead any more once the first has gone unanswered for a second.
  const items = Array.from({ length: times }, (_, n) => ({ ref: `r${n}`, ...run }));
  expect((await daemon.call('POST', '/api/v1/runs/batch', { items })).status).toBe(201);
}

function answerAll(): void {
  holding = false;
  for (const response of owed.splice(0)) response.end('{}');
}

async function draining(daemon: Daemon): Promise<unknown> {
  daemon.signal('SIGTERM');
  return until(async () => {
    const { status, body } = await daemon.call('GET', '/readyz');
    return status === 503 ? body : null;
  });
}

async function succeeded(count: number): Promise<RunRow[]> {
  return until(async () => {
    const rows = await runs();
    return rows.filter(({ status }) => status === 'succeeded').length === count ? rows : null;
  });
}

describe('SIGTERM', () => {
  it(
    'lets a slow handoff end, hands back what it claimed ahead for another daemon to send once, and exits 0',
    { tags: [LONG] },
    async () => {
      const first = await start({ FIRELOCK_DISPATCH_CONCURRENCY: '1' });
      await fire(first, 4);
      await until(async () => (await runs()).every(({ claimed_by }) => claimed_by !== null) || null);
      await receiver.arrived(1);

      expect(await draining(first)).toMatchObject({
        status: 'unavailable',
        checks: { shutdown: 'stopping' },
      });
      await first.logged(/^unsent runs handed back/);
      const [sent] = receiver.arrivals;
      for (const { id, status, claimed_by } of await runs()) {
        expect(status).toBe('pending');
        if (id === sent?.body.runId) expect(claimed_by).not.toBeNull();
        else expect(claimed_by).toBeNull();
      }
      expect(first.isRunning()).toBe(true);
      answerAll();
      expect(await first.exited).toBe(0);
      const [finished] = await sql<RunRow[]>`SELECT * FROM all_runs WHERE id = ${sent?.body.runId ?? ''}`;
      expect(finished).toMatchObject({ status: 'succeeded', attempts: 1, failures: 0 });
      expect(receiver.arrivals).toHaveLength(1);

      const second = await start();
      const settled = await succeeded(4);
      expect(receiver.arrivals.map(({ body }) => body.runId).sort()).toEqual(settled.map(({ id }) => id).sort());
      for (const { failures, lateness_ms } of settled) {
        expect(failures).toBe(0);
        expect(Number(lateness_ms ?? NaN)).toBeGreaterThanOrEqual(0);
      }
      const { body } = await second.call('GET', '/api/v1/instances');
      const port = ({ url }: { url: string }) => Number(new URL(url).port);
      expect(body).toMatchObject({
        items: [
          { alive: true, leftAt: null, port: port(second) },
          { alive: false, leftAt: expect.any(String) as string, port: port(first), inFlight: 0 },
        ],
      });
      expect(metric(await second.call('GET', '/metrics'), 'firelock_fire_lateness_seconds_count')).toBe(3);
    },
  );

  it(
    'resets a handoff that outlasts the shutdown time, and another daemon sends it again, with no failure counted',
    { tags: [LONG] },
    async () => {
      const first = await start({ FIRELOCK_SHUTDOWN_SECONDS: '1' });
      await fire(first, 1);
      await receiver.arrived(1);
      first.signal('SIGTERM');
      expect(await first.exited).toBe(0);
      await until(() => reset === 1 || null);
      const [pending] = await runs();
      expect(pending).toMatchObject({ status: 'pending', claimed_by: null, attempts: 1, failures: 0 });

      answerAll();
      const second = await start();
      const [settled] = await succeeded(1);
      expect(settled).toMatchObject({ attempts: 2, failures: 0 });
      expect(receiver.arrivals.map(({ body }) => [body.runId, body.attempt])).toEqual([
        [settled?.id, 1],
        [settled?.id, 2],
      ]);
      const { body } = await second.call('GET', `/api/v1/runs/${settled?.id ?? ''}`);
      expect(body).toMatchObject({
        error: null,
        attemptLog: [
          {
            attempt: 1,
            outcome: 'unknown',
            error: { message: 'firelock stopped before the target answered' },
          },
          { attempt: 2, outcome: 'accepted', statusCode: 200 },
        ],
      });
    },
  );

  it('stops claiming first: if a pass of its backstop hangs, it still stops claiming, hands back and leaves', async () => {
    const daemon = await start({
      FIRELOCK_DISPATCH_CONCURRENCY: '1',
      FIRELOCK_RECOVERY_INTERVAL_SECONDS: '1',
    });
    await fire(daemon, 2);
    await until(async () => (await runs()).every(({ claimed_by }) => claimed_by !== null) || null);
    await receiver.arrived(1);
    const somebody = postgres(database.url, { max: 1 });
    onTestFinished(() => somebody.end({ timeout: 0 }));
    await somebody.unsafe('BEGIN; LOCK TABLE run_dependencies');
    // Retention, at its first look, may wait for the table too.
    await until(async () => {
      const waiting = await sql`SELECT FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'
          AND query LIKE '%FROM run_dependencies d%counted_at IS NULL%'`;
      return waiting.length > 0 || null;
    });

    await draining(daemon);
    expect((await daemon.call('POST', '/api/v1/schedules/slow/fire')).status).toBe(202);
    answerAll();
    expect(await daemon.exited).toBe(0);
    expect(receiver.arrivals).toHaveLength(1);
    const unclaimed = { status: 'pending', claimed_by: null };
    expect((await runs()).sort(byStatus)).toMatchObject([unclaimed, unclaimed, { status: 'succeeded' }]);
    expect(daemon.log().map(({ msg }) => msg)).toContain('the backstop service has not stopped in time');
  });

  it('a second time ends the process at once', async () => {
    const daemon = await start();
    await fire(daemon, 1);
    await receiver.arrived(1);
    await draining(daemon);
    daemon.signal('SIGINT');
    expect(await daemon.exited).toBe(130);
    await until(() => reset === 1 || null);
  });

  it('that comes twice at once counts once: from a terminal, npm passes on what its child has received already', async () => {
    const daemon = await start();
    await fire(daemon, 1);
    await receiver.arrived(1);
    for (const pause of [0, 5, 5]) {
      await sleep(pause);
      daemon.signal('SIGINT');
    }
    // It answers, so it has heard them.
    await until(async () => (await daemon.call('GET', '/readyz')).status === 503 || null);
    expect(reset).toBe(0);
    answerAll();
    expect(await daemon.exited).toBe(0);
    expect((await runs()).map(({ status }) => status)).toEqual(['succeeded']);
  });

  it('frees the fire-lock of a schedule that it is still planning, and writes nothing of the plan', async () => {
    const daemon = await start();
    await fire(daemon, 0);
    await sql`UPDATE schedules SET timing = '{"cron":"* * * * * *"}', next_occurrence_at = date_trunc('second', now()) - interval '60 days',
      next_fire_at = now()`;
    const locked = () =>
      sql`SELECT next_occurrence_at < now() - interval '59 days' AS unplanned FROM schedules WHERE locked_by IS NOT NULL`;
    await until(async () => (await locked()).length === 1 || null);
    daemon.signal('SIGTERM');
    expect(await daemon.exited).toBe(0);
    expect(await locked()).toEqual([]);
    const [row] = await sql`SELECT next_occurrence_at < now() - interval '59 days' AS unplanned FROM schedules`;
    expect(row).toEqual({ unplanned: true });
    expect(await runs()).toEqual([]);
  });

  it('ends a daemon that is about to start, too', async () => {
    const daemon = spawnDaemon({ DATABASE_URL: database.url, PORT: '0' });
    await daemon.logged(/^PostgreSQL at/);
    daemon.signal('SIGTERM');
    expect(await daemon.exited).toBe(0);
  });
});

function byStatus({ status: a }: RunRow, { status: b }: RunRow): number {
  return a.localeCompare(b);
}

function metric({ body }: { body: unknown }, name: string): number {
  return Number(new RegExp(`^${name} (.*)$`, 'm').exec(String(body))?.[1] ?? NaN);
}
