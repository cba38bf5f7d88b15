import { setTimeout as sleep } from 'node:timers/promises';
import { RUN_TRIGGERS } from '../../../src/core/runs/run.ts';
import { call } from '../../../test/support/calls.ts';
import { median } from '../measures/statistics.ts';
import { SMALL_TEAM } from './seed-teams.ts';

export interface AskedList {
  path: string;
  /** In the first answer; null: it is no list. */
  items: number | null;
  medianMs: number;
  worstMs: number;
  /** Answers 5xx: the database took too long. */
  failed: number;
}

/** What takes that long even when it is warm is not asked as often. */
const TEDIOUS_MS = 2_000;

/** Each list and figure that a caller with a scope may ask for. `id` is a schedule, `key` the key of a one-off run. */
function listsOf({ id, key }: { id: string; key: string }): string[] {
  return [
    ...['', 'q=job-7', 'q=nowhere', 'label=tenth:3', 'label=tenth:none', 'status=paused', 'status=error'].map(
      (filter) => `schedules?${filter}`,
    ),
    ...['late=true', 'recent=20', 'limit=500'].map((filter) => `schedules?${filter}`),
    ...['', 'limit=500', 'status=failed', 'status=pending,running', 'status=unknown'].map(
      (filter) => `runs?${filter}`,
    ),
    ...RUN_TRIGGERS.map((trigger) => `runs?trigger=${trigger}`),
    ...[`scheduleId=${id}`, `key=${key}`, 'label=tenth:3', 'unmet=start'].map((filter) => `runs?${filter}`),
    ...['runs', 'occurrences', 'upcoming', 'versions', 'stats'].map((part) => `schedules/${id}/${part}`),
    ...[
      'queues',
      'alerts',
      'alerts?open=true',
      'audit',
      'audit?action=schedule.fire',
      `audit?scheduleId=${id}`,
    ],
    ...['stats', 'load', 'load?top=20', 'calendars', 'limits', 'connections', 'notifiers', 'me'],
  ];
}

export const OF_SMALL = listsOf({ id: `${SMALL_TEAM}job-7`, key: `${SMALL_TEAM}1000` });
export const OF_ALL = listsOf({ id: 'resting-7', key: 'other.1001' });

/** Asks each so many times, with this token, after a first time that does not count. */
export async function askLists(
  daemonUrl: string,
  { token, paths, calls }: { token: string; paths: readonly string[]; calls: number },
): Promise<AskedList[]> {
  const found: AskedList[] = [];
  for (const path of paths) {
    const { items, ms } = await askOnce(`${daemonUrl}/api/v1/${path}`, token);
    const taken: number[] = [];
    let failed = 0;
    for (let left = ms > TEDIOUS_MS ? 1 : calls; left > 0; left -= 1) {
      await sleep(PAUSE_MS);
      const answer = await askOnce(`${daemonUrl}/api/v1/${path}`, token);
      taken.push(answer.ms);
      if (answer.status >= 500) failed += 1;
    }
    found.push({ path, items, medianMs: median(taken), worstMs: Math.max(...taken), failed });
  }
  return found;
}

/** Between two calls, as people make. */
const PAUSE_MS = 5;

async function askOnce(
  url: string,
  token: string,
): Promise<{ items: number | null; ms: number; status: number }> {
  const startedAt = performance.now();
  const { status, body } = await call(url, 'GET', { headers: { authorization: `Bearer ${token}` } });
  const ms = performance.now() - startedAt;
  if (status !== 200 && status < 500)
    throw new Error(`${url} answered ${status}: ${JSON.stringify(body).slice(0, 300)}`);
  return { items: (body as { items?: unknown[] }).items?.length ?? null, ms, status };
}
