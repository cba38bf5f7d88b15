import type { Occurrence, Run } from '../../../../../clients/typescript/src/generated/types.gen.ts';

/** What became of an occurrence, in one word; the worst first. */
export const OUTCOMES = [
  'failed',
  'abandoned',
  'unknown',
  'missed',
  'open',
  'cancelled',
  'skipped',
  'paused',
  'excluded',
  'succeeded',
  'fired',
  'upcoming',
] as const;
export type Outcome = (typeof OUTCOMES)[number];

/** Statuses of runs whose occurrences are not simply `succeeded`. */
export const TOLD_STATUSES = 'waiting,pending,running,failed,unknown,abandoned,cancelled';

/** An occurrence, and what became of its run. */
export interface Told extends Occurrence {
  outcome: Outcome;
}

/** The runs of a period that did not simply succeed. */
export interface Outcomes {
  statuses: ReadonlyMap<string, Run['status']>;
  /** For earlier moments the page did not ask: they fired, and nothing else is known of them here. */
  knownFrom: number;
}

export function withOutcome(occurrence: Occurrence, { statuses, knownFrom }: Outcomes): Told {
  const { state, runId, fireAt } = occurrence;
  if (state !== 'fired') return { ...occurrence, outcome: state };
  const status = runId === undefined ? undefined : statuses.get(runId);
  if (status !== undefined) return { ...occurrence, outcome: outcomeOf(status) };
  return { ...occurrence, outcome: Date.parse(fireAt) >= knownFrom ? 'succeeded' : 'fired' };
}

function outcomeOf(status: Run['status']): Outcome {
  switch (status) {
    case 'waiting':
    case 'pending':
    case 'running':
      return 'open';
    case 'succeeded':
    case 'failed':
    case 'unknown':
    case 'abandoned':
    case 'skipped':
    case 'cancelled':
      return status;
  }
}

/** Of several occurrences. */
export interface Bucket {
  from: number;
  to: number;
  /** Null: there are none. */
  worst: Outcome | null;
  counts: Partial<Record<Outcome, number>>;
  items: Told[];
}

/** `edges`: where buckets begin, ascending, and the end of the last. */
export function fold(items: readonly Told[], edges: readonly number[]): Bucket[] {
  const buckets = edges.slice(0, -1).map((from, index): Bucket => {
    return { from, to: edges[index + 1] ?? from, worst: null, counts: {}, items: [] };
  });
  let index = 0;
  for (const item of items) {
    const at = Date.parse(item.fireAt);
    while (index < buckets.length - 1 && at >= (edges[index + 1] ?? Infinity)) index += 1;
    const bucket = buckets[index];
    if (!bucket || at < bucket.from || at >= bucket.to) continue;
    bucket.items.push(item);
    bucket.counts[item.outcome] = (bucket.counts[item.outcome] ?? 0) + 1;
  }
  for (const bucket of buckets) bucket.worst = OUTCOMES.find((outcome) => bucket.counts[outcome]) ?? null;
  return buckets;
}

/** Some of them begin less than a minute after another: hours and minutes alone would call them the same. */
export function areWithinAMinute(buckets: readonly Bucket[]): boolean {
  return buckets.some(({ from }, index) => index > 0 && from - (buckets[index - 1]?.from ?? from) < 60_000);
}

/** `3 missed, 57 succeeded`, the worst first. */
export function countsText(counts: Bucket['counts']): string {
  const said = OUTCOMES.flatMap((outcome) =>
    counts[outcome] === undefined ? [] : [`${counts[outcome]} ${WORDS[outcome]}`],
  );
  return said.length === 0 ? 'no fire is due' : said.join(', ');
}

export const WORDS: Record<Outcome, string> = {
  failed: 'failed',
  abandoned: 'abandoned',
  unknown: 'unknown',
  missed: 'missed',
  open: 'under way',
  cancelled: 'cancelled',
  skipped: 'skipped',
  paused: 'paused',
  excluded: 'excluded',
  succeeded: 'succeeded',
  fired: 'fired',
  upcoming: 'to come',
};
