import { useRef } from 'preact/hooks';
import { get } from '../../../api/http.ts';
import type {
  ListOccurrencesResponse,
  Occurrence,
  Run,
} from '../../../../../clients/typescript/src/generated/types.gen.ts';
import { type Polled, usePoll } from '../../../state/poll.ts';
import { type Outcomes, TOLD_STATUSES, type Told, withOutcome } from './outcome.ts';
import type { Period } from './period.ts';
import { callPath } from '../../../state/schedule-paths.ts';

interface Read {
  items: Occurrence[];
  /** Up to where it was asked, since the rest would take too many calls; null: all of it. */
  through: string | null;
  unplannable: NonNullable<ListOccurrencesResponse['unplannable']>;
}

export interface Loaded extends Read {
  items: Told[];
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
const MAX_RUN_PAGES = 3;
/** What was due before that will not change by itself. */
const SETTLED_MS = 120_000;
/** What comes after that does not, either. */
const AHEAD_MS = 600_000;
const MAX_PAGES_AGAIN = 20;

interface Known extends Read {
  key: string;
}

/**
 * What became of each occurrence of the period, in at most that many calls of 500. Asked again, it asks only for what may have
 * changed since, if that is less than all of it.
 */
export function useOccurrences(id: string, period: Period, { mostPages, asOf }: Options): Polled<Loaded> {
  const known = useRef<Known | null>(null);
  const { from, to } = period;
  const key = `occurrences ${id} ${from} ${to} ${mostPages} ${asOf}`;
  return usePoll(
    key,
    async (signal) => {
      const before = known.current?.key === key ? known.current : null;
      const isLong = before !== null && before.items.length > PAGE;
      const read = isLong
        ? await readAgain(id, before, period, signal)
        : await readPages(id, period, mostPages, signal);
      const told = await readOutcomes(id, read.items, signal);
      known.current = { key, ...read };
      return { ...read, items: read.items.map((item) => withOutcome(item, told)) };
    },
    { everyMs: to < Date.now() ? 60_000 : 5_000, keep: true },
  );
}

/** The long past and what is far ahead stay as they were. */
async function readAgain(
  id: string,
  { items, unplannable, through }: Known,
  { from, to }: Period,
  signal: AbortSignal,
): Promise<Read> {
  const now = Date.now();
  const at = (item: Occurrence) => Date.parse(item.fireAt);
  const open = items.findIndex((item) => item.state === 'upcoming' || at(item) >= now - SETTLED_MS);
  const settled = items.slice(0, open === -1 ? items.length : open);
  const last = settled.at(-1);
  const since = last ? at(last) + 1 : from;
  const until = Math.min(through === null ? to : Date.parse(through) + 1, now + AHEAD_MS);
  if (since >= until) return { items, unplannable, through };
  const fresh = await readPages(id, { from: since, to: until }, MAX_PAGES_AGAIN, signal);
  const far = fresh.through === null ? items.filter((item) => at(item) >= until) : [];
  return {
    items: [...settled, ...fresh.items, ...far],
    unplannable: [...unplannable.filter((span) => Date.parse(span.from) < since), ...fresh.unplannable],
    through: fresh.through ?? through,
  };
}

async function readPages(
  id: string,
  { from, to }: { from: number; to: number },
  mostPages: number,
  signal: AbortSignal,
): Promise<Read> {
  const items: Occurrence[] = [];
  const unplannable: Loaded['unplannable'] = [];
  const period = { from: new Date(from).toISOString(), to: new Date(to).toISOString() };
  let cursor: string | null = null;
  for (let page = 0; page < mostPages; page += 1) {
    const path = callPath(id, '/occurrences');
    const answer: Page = await get<Page>(path, { ...period, limit: PAGE, cursor }, signal);
    items.push(...answer.items);
    unplannable.push(...(answer.unplannable ?? []));
    cursor = answer.nextCursor;
    if (cursor === null) break;
  }
  return { items, through: cursor === null ? null : (items.at(-1)?.fireAt ?? period.from), unplannable };
}

/** Most runs succeed: only the others are asked for, the newest first. */
async function readOutcomes(id: string, items: readonly Occurrence[], signal: AbortSignal): Promise<Outcomes> {
  const statuses = new Map<string, Run['status']>();
  const fired = items.filter(({ state }) => state === 'fired');
  const [first, last] = [fired[0], fired.at(-1)];
  if (!first || !last) return { statuses, knownFrom: 0 };
  const to = new Date(Date.parse(last.fireAt) + 1).toISOString();
  const query = { from: first.fireAt, to, status: TOLD_STATUSES, limit: RUNS_PAGE };
  let cursor: string | null = null;
  for (let page = 0; page < MAX_RUN_PAGES; page += 1) {
    const path = callPath(id, '/runs');
    const answer: { items: Run[]; nextCursor: string | null } = await get(path, { ...query, cursor }, signal);
    for (const run of answer.items) statuses.set(run.id, run.status);
    cursor = answer.nextCursor;
    if (cursor === null) return { statuses, knownFrom: 0 };
    const oldest = answer.items.at(-1);
    if (page === MAX_RUN_PAGES - 1 && oldest) return { statuses, knownFrom: Date.parse(oldest.scheduledFor) };
  }
  return { statuses, knownFrom: 0 };
}
