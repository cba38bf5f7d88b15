import { useRef } from 'preact/hooks';
import { get } from '../../../api/http.ts';
import type { ListOccurrencesResponse, Occurrence, Run } from '../../../api/generated/types.gen.ts';
import { type Polled, usePoll } from '../../../state/poll.ts';
import { type Outcomes, TOLD_STATUSES, type Told, withOutcome } from './outcome.ts';
import type { Period } from './period.ts';

export interface Loaded {
  items: Told[];
  /** Up to where it was asked, since the rest would take too many calls; null: all of it. */
  through: string | null;
  unplannable: NonNullable<ListOccurrencesResponse['unplannable']>;
}

interface Options {
  mostPages: number;
  /** When it is another, the past may be another too. */
  asOf: string;
}

type Page = ListOccurrencesResponse;

/** No call asks for more than that, so that each is quick whatever the schedule. */
const PAGE = 500;
const RUNS_PAGE = 100;
const MOST_RUN_PAGES = 3;
/** What was due before it will not change by itself. */
const SETTLED_MS = 120_000;

/**
 * What became of each occurrence of the period, in at most that many calls of 500. Asked again, it asks only for what may
 * have changed since, where that is less than all of it.
 */
export function useOccurrences(
  id: string,
  { from, to }: Period,
  { mostPages, asOf }: Options,
): Polled<Loaded> {
  const known = useRef<{ key: string; items: Occurrence[]; unplannable: Loaded['unplannable'] } | null>(null);
  const key = `occurrences ${id} ${from} ${to} ${mostPages} ${asOf}`;
  return usePoll(
    key,
    async (signal) => {
      const before = known.current?.key === key ? known.current : null;
      const settled = before && before.items.length > PAGE ? settledOf(before.items) : [];
      const start = settled.at(-1)?.fireAt;
      const since = start === undefined ? from : Date.parse(start) + 1;
      const loaded = await readPages(id, { from: since, to }, mostPages, signal);
      const items = [...settled, ...loaded.items];
      const unplannable = [...loaded.unplannable, ...(settled.length > 0 ? (before?.unplannable ?? []) : [])];
      if (loaded.through === null) known.current = { key, items, unplannable };
      const outcomes = await readOutcomes(id, items, signal);
      const told = items.map((item) => withOutcome(item, outcomes));
      return { items: told, through: loaded.through, unplannable };
    },
    { everyMs: to < Date.now() ? 60_000 : 5_000, keep: true },
  );
}

/** A long past that was loaded whole; what is near or still open is asked for again. */
function settledOf(items: readonly Occurrence[]): Occurrence[] {
  const limit = Date.now() - SETTLED_MS;
  const first = items.findIndex(({ state, fireAt }) => state === 'upcoming' || Date.parse(fireAt) >= limit);
  return items.slice(0, first === -1 ? items.length : first);
}

async function readPages(
  id: string,
  { from, to }: { from: number; to: number },
  mostPages: number,
  signal: AbortSignal,
): Promise<{ items: Occurrence[]; through: string | null; unplannable: Loaded['unplannable'] }> {
  const items: Occurrence[] = [];
  const unplannable: Loaded['unplannable'] = [];
  if (from >= to) return { items, through: null, unplannable };
  const period = { from: new Date(from).toISOString(), to: new Date(to).toISOString() };
  let cursor: string | null = null;
  for (let page = 0; page < mostPages; page += 1) {
    const path = `/schedules/${encodeURIComponent(id)}/occurrences`;
    const answer: Page = await get<Page>(path, { ...period, limit: PAGE, cursor }, signal);
    items.push(...answer.items);
    unplannable.push(...(answer.unplannable ?? []));
    cursor = answer.nextCursor;
    if (cursor === null) break;
  }
  return { items, through: cursor === null ? null : (items.at(-1)?.fireAt ?? period.from), unplannable };
}

/** Most runs succeed: only the others are asked for, the newest first. */
async function readOutcomes(
  id: string,
  items: readonly Occurrence[],
  signal: AbortSignal,
): Promise<Outcomes> {
  const statuses = new Map<string, Run['status']>();
  const fired = items.filter(({ state }) => state === 'fired');
  const [first, last] = [fired[0], fired.at(-1)];
  if (!first || !last) return { statuses, knownFrom: 0 };
  const to = new Date(Date.parse(last.fireAt) + 1).toISOString();
  const query = { from: first.fireAt, to, status: TOLD_STATUSES, limit: RUNS_PAGE };
  let cursor: string | null = null;
  for (let page = 0; page < MOST_RUN_PAGES; page += 1) {
    const path = `/schedules/${encodeURIComponent(id)}/runs`;
    const answer: { items: Run[]; nextCursor: string | null } = await get(path, { ...query, cursor }, signal);
    for (const run of answer.items) statuses.set(run.id, run.status);
    cursor = answer.nextCursor;
    if (cursor === null) return { statuses, knownFrom: 0 };
    const oldest = answer.items.at(-1);
    if (page === MOST_RUN_PAGES - 1 && oldest)
      return { statuses, knownFrom: Date.parse(oldest.scheduledFor) };
  }
  return { statuses, knownFrom: 0 };
}
