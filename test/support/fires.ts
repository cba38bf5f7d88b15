import type postgres from 'postgres';
import { expect } from 'vitest';
import type { AnyDaemon } from './programs.ts';
import type { Receiver } from './receiver.ts';
import { until } from './until.ts';

export interface RunRow {
  id: string;
  schedule_id: string;
  scheduled_for: Date;
  trigger: string;
  status: string;
  attempts: number;
  failures: number;
  recoveries: number;
  coalesced: number;
  claimed_by: string | null;
  lost_at: Date | null;
  lateness_ms: string | null;
  attempt_log: unknown[];
}

/** What has to be told of a schedule that fires every second, in UTC as everywhere here. */
export const EVERY_SECOND = '* * * * * *';

/** All runs, once none of them is pending. */
export function endedRuns(sql: postgres.Sql): Promise<RunRow[]> {
  return until(async () => {
    const runs = await sql<RunRow[]>`SELECT * FROM all_runs ORDER BY scheduled_for, id`;
    return runs.every(({ status }) => status !== 'pending') ? runs : null;
  });
}

/**
 * Every whole second from the creation of each schedule that fires every second to its pause has a run of its own, and
 * there is no other. Returns how many there are.
 */
export async function expectEverySecondPlanned(sql: postgres.Sql): Promise<number> {
  const schedules = await sql<{ id: string; created_at: Date; updated_at: Date; seconds: Date[] }[]>`
    SELECT s.id, s.created_at, s.updated_at, array(SELECT scheduled_for FROM all_runs r
      WHERE r.schedule_uid = s.uid AND trigger <> 'manual' ORDER BY scheduled_for) AS seconds
    FROM schedules s WHERE timing::jsonb->>'cron' = ${EVERY_SECOND}`;
  let count = 0;
  for (const { id, created_at, updated_at, seconds } of schedules) {
    const due: number[] = [];
    for (let at = Math.floor(+created_at / 1000) * 1000 + 1000; at <= +updated_at; at += 1000) due.push(at);
    expect({ id, seconds: seconds.map(Number) }).toEqual({ id, seconds: due });
    count += due.length;
  }
  const [folded] = await sql<
    { count: number }[]
  >`SELECT count(*)::int FROM all_runs WHERE coalesced > 0 OR reason IS NOT NULL`;
  expect(folded?.count).toBe(0);
  return count;
}

/** Each run arrived under its id and nothing else did, none before it was due; more often than once only where an attempt was lost. */
export function expectArrived(receiver: Receiver, runs: readonly RunRow[]): void {
  const arrivals = Map.groupBy(receiver.arrivals, ({ body }) => body.runId);
  expect([...arrivals.keys()].sort()).toEqual(runs.map(({ id }) => id).sort());
  for (const { id, attempts } of runs) {
    const own = arrivals.get(id) ?? [];
    expect(own.length).toBeLessThanOrEqual(attempts);
    expect(new Set(own.map(({ body }) => body.attempt)).size).toBe(own.length);
    for (const { at, body } of own) expect(at).toBeGreaterThanOrEqual(Date.parse(body.scheduledFor));
  }
}

/** Schedules `s0`… that fire every second at the receiver, until paused. */
export async function putEverySecond(
  daemon: AnyDaemon,
  receiver: Receiver,
  count: number,
  more: object = {},
): Promise<void> {
  const items = Array.from({ length: count }, (_, index) => ({
    id: `s${index}`,
    cron: EVERY_SECOND,
    target: { type: 'http', url: `${receiver.url}/${index}` },
    ...more,
  }));
  const answer = await daemon.call('POST', '/api/v1/schedules/batch', { items });
  expect(answer.status).toBe(200);
}

export async function pauseAll(daemon: AnyDaemon, count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    const answer = await daemon.call('PATCH', `/api/v1/schedules/s${index}`, { enabled: false });
    expect(answer.status).toBe(200);
  }
}

/** A counter or gauge of each of these daemons, summed. */
export async function summed(daemons: readonly AnyDaemon[], name: string): Promise<number> {
  const values = await Promise.all(
    daemons.map(async (daemon) => {
      const { body } = await daemon.call('GET', '/metrics');
      const line = String(body)
        .split('\n')
        .find((text) => text.startsWith(`${name} `));
      return Number(line?.slice(name.length) ?? NaN);
    }),
  );
  return values.reduce((sum, value) => sum + value, 0);
}
