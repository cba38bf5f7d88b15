import type { ApiClient } from '../cluster/api-client.ts';
import type { DeliveredRun } from '../load/delivery.ts';
import type { Ends, OverlapRun, SentAttempt } from './evidence.ts';

interface RunAnswer {
  scheduleId: string;
  scheduledFor: string;
  status: string;
  reason: string | null;
  finishedAt: string | null;
}

const PAGE = 500;

/** All runs of the schedules that must not overlap. */
export async function overlapRunsOf(client: ApiClient): Promise<OverlapRun[]> {
  const runs: OverlapRun[] = [];
  let cursor = '';
  for (;;) {
    const query = `label=demo:overlap&limit=${PAGE}${cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`}`;
    const { items, nextCursor } = (await client.call('GET', `runs?${query}`)) as {
      items: RunAnswer[];
      nextCursor: string | null;
    };
    for (const { scheduleId, scheduledFor, status, reason, finishedAt } of items) {
      const ended = finishedAt === null ? null : Date.parse(finishedAt);
      runs.push({ scheduleId, scheduledFor: Date.parse(scheduledFor), status, reason, finishedAt: ended });
    }
    if (nextCursor === null) return runs;
    cursor = nextCursor;
  }
}

/** Who made which attempt of the runs that came more than once. */
export async function sendersOf(
  client: ApiClient,
  deliveries: readonly DeliveredRun[],
): Promise<Map<string, SentAttempt[]>> {
  const seen = new Set<string>();
  const repeated = new Set<string>();
  for (const { runId } of deliveries) (seen.has(runId) ? repeated : seen).add(runId);
  const senders = new Map<string, SentAttempt[]>();
  for (const runId of repeated) {
    const { attemptLog } = (await client.call('GET', `runs/${runId}`)) as { attemptLog: SentAttempt[] };
    senders.set(runId, attemptLog);
  }
  return senders;
}

/** firelock's own count of all runs of the demo. */
export interface DemoStats extends Ends {
  totalRuns: number;
  skippedRuns: number;
  lostRuns: number;
  recoveredRuns: number;
}

/** How many runs each instance has claimed and not settled, the dead ones too, by its id. */
export async function claimsOf(client: ApiClient): Promise<Map<string, number>> {
  const { items } = (await client.call('GET', 'instances')) as { items: { id: string; inFlight: number }[] };
  return new Map(items.map(({ id, inFlight }) => [id, inFlight]));
}

export async function statsOf(client: ApiClient): Promise<DemoStats> {
  return (await client.call('GET', 'stats')) as DemoStats;
}
