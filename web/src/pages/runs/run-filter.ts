import { place } from '../../state/route.ts';

/** How far back, in seconds; the address says it like this, so that a saved filter moves on with the time. */
const SECONDS: Record<string, number> = { '15m': 900, '1h': 3600, '24h': 86_400, '7d': 7 * 86_400 };

export const SINCE = [
  ['', 'Any time'],
  ['15m', 'Last 15 minutes'],
  ['1h', 'Last hour'],
  ['24h', 'Last 24 hours'],
  ['7d', 'Last 7 days'],
] as const;

/** What of the address is a filter of runs. */
interface RunFilter {
  scheduleId: string | null;
  batchId: string | null;
  status: string | null;
  trigger: string | null;
  unmet: string | null;
  label: readonly string[];
  since: string | null;
  from: string | null;
  to: string | null;
}

export function filterInAddress(): RunFilter {
  const { query } = place.value;
  const one = (name: string) => query.get(name);
  return {
    scheduleId: one('scheduleId'),
    batchId: one('batchId'),
    status: one('status'),
    trigger: one('trigger'),
    unmet: one('unmet'),
    label: query.getAll('label'),
    since: one('since'),
    from: one('from'),
    to: one('to'),
  };
}

/** As the API takes it, without what is not named; `since` counts from now. */
export function sentFilter({ since, from, label, ...rest }: RunFilter): Record<string, string | readonly string[]> {
  const seconds = SECONDS[since ?? ''];
  const earliest = seconds === undefined ? from : new Date(Date.now() - seconds * 1000).toISOString();
  const named = Object.entries({ ...rest, from: earliest }).filter(
    (entry): entry is [string, string] => entry[1] !== null && entry[1] !== '',
  );
  return { ...Object.fromEntries(named), ...(label.length > 0 && { label }) };
}
