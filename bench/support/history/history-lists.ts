import { DAY_MS } from '../../../src/core/instant.ts';
import { RUN_STATUSES, RUN_TRIGGERS } from '../../../src/core/runs/run.ts';
import { iso } from './day-partitions.ts';
import { BIG, SMALL } from './seed-history.ts';
import { median } from '../measures/statistics.ts';

const CALLS = 9;
/** What takes that long even when it is warm is not asked as often. */
const TEDIOUS_MS = 2_000;

export interface Asked {
  kind: 'list' | 'stats of a day' | 'other stats';
  what: string;
  /** The median, once warm. */
  ms: number;
  worstMs: number;
  /** The first call. */
  coldMs: number;
  status: number;
  items: number | null;
}

/** Asks for the first page of every list and for all kinds of figures, each some times over. */
export async function askHistory(daemonUrl: string, days: readonly number[]): Promise<Asked[]> {
  const asked: Asked[] = [];
  for (const question of questionsOf(days)) asked.push(await askSomeTimes(daemonUrl, question));
  return asked;
}

type Question = Pick<Asked, 'kind' | 'what'> & { path: string };

function questionsOf(days: readonly number[]): Question[] {
  const last = days.at(-1) ?? 0;
  const middle = days[Math.floor(days.length / 2)] ?? 0;
  const day = (from: number) => `from=${iso(from)}&to=${iso(from + DAY_MS)}`;
  const hour = `from=${iso(middle + 36_000_000)}&to=${iso(middle + 39_600_000)}`;
  const list = (path: string): Question => ({ kind: 'list', what: path, path });
  const stats = (kind: Question['kind'], what: string, path: string): Question => ({ kind, what, path });
  const runs = (query: string) => [list(`runs?${query}`), list(`runs?${query}&limit=500`)];
  return [
    list('runs'),
    list('runs?limit=500'),
    ...RUN_STATUSES.flatMap((status) => runs(`status=${status}`)),
    ...RUN_TRIGGERS.flatMap((trigger) => runs(`trigger=${trigger}`)),
    list('runs?status=failed&trigger=manual'),
    list('runs?status=unknown&trigger=api'),
    ...[BIG, SMALL].flatMap((id) => [
      ...runs(`scheduleId=${id}`),
      ...RUN_STATUSES.map((status) => list(`runs?scheduleId=${id}&status=${status}`)),
      ...RUN_TRIGGERS.map((trigger) => list(`runs?scheduleId=${id}&trigger=${trigger}`)),
      list(`schedules/${id}/runs`),
      list(`schedules/${id}/occurrences`),
      list(`schedules/${id}/occurrences?${day(middle)}&limit=500`),
      list(`schedules/${id}/versions`),
    ]),
    ...runs(day(middle)),
    ...runs(hour),
    list(`runs?status=failed&${day(middle)}`),
    list(`runs?status=unknown&${day(middle)}`),
    list(`runs?status=failed&to=${iso(middle)}`),
    list('runs?key=none'),
    list('runs?label=number:7'),
    list('runs?label=number:7&status=failed'),
    list('runs?label=tenth:3'),
    ...runs('label=kind:small'),
    list('runs?label=kind:small&status=failed'),
    list('schedules'),
    list('schedules?limit=500'),
    list('schedules?recent=20'),
    list('schedules?recent=50'),
    list('schedules?status=paused'),
    list('schedules?status=active'),
    list('schedules?q=small-1'),
    list('queues'),
    stats('stats of a day', 'of all schedules', `stats?${day(last)}`),
    stats('stats of a day', 'of all schedules, in the middle', `stats?${day(middle)}`),
    stats('stats of a day', 'of the big schedule', `schedules/${BIG}/stats?${day(last)}`),
    stats('stats of a day', 'of a small schedule', `schedules/${SMALL}/stats?${day(last)}`),
    stats('other stats', 'a week of all', `stats?from=${iso(last - 6 * DAY_MS)}&to=${iso(last + DAY_MS)}`),
    stats('other stats', 'all of the big schedule', `schedules/${BIG}/stats`),
    stats('other stats', 'all of a small schedule', `schedules/${SMALL}/stats`),
    stats('other stats', 'everything', 'stats'),
  ];
}

async function askSomeTimes(daemonUrl: string, { kind, what, path }: Question): Promise<Asked> {
  const cold = await askOnce(daemonUrl, path);
  const calls = cold.ms > TEDIOUS_MS ? 1 : CALLS;
  const times: number[] = [];
  let last = cold;
  while (times.length < calls) {
    last = await askOnce(daemonUrl, path);
    times.push(last.ms);
  }
  const { status, items } = last;
  return { kind, what, ms: median(times), worstMs: Math.max(...times), coldMs: cold.ms, status, items };
}

async function askOnce(daemonUrl: string, path: string): Promise<{ ms: number; status: number; items: number | null }> {
  const startedAt = performance.now();
  const response = await fetch(`${daemonUrl}/api/v1/${path}`);
  const body = await response.text();
  const ms = performance.now() - startedAt;
  // A database that took too long is answered for; anything else is a fault of the question.
  if (response.status !== 200 && response.status < 500) {
    throw new Error(`${path} answered ${response.status}: ${body.slice(0, 300)}`);
  }
  const items = response.ok ? (JSON.parse(body) as { items?: unknown[] }).items?.length : undefined;
  return { ms, status: response.status, items: items ?? null };
}
