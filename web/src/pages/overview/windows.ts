import { get } from '../../api/http.ts';
import type { Stats } from '../../../../clients/typescript/src/generated/types.gen.ts';

export type Span = '1h' | '24h' | '7d';

/** How many windows of how many seconds a span has. The newest is counted anew each time, and a long one holds more. */
export const SPANS: Record<Span, { windows: number; seconds: number; askEveryMs: number }> = {
  '1h': { windows: 30, seconds: 120, askEveryMs: 5_000 },
  '24h': { windows: 48, seconds: 1800, askEveryMs: 15_000 },
  '7d': { windows: 56, seconds: 3 * 3600, askEveryMs: 60_000 },
};

/** What became of the runs of one piece of time. */
export interface Window {
  /** Unix seconds. */
  from: number;
  stats: Stats;
}

/** Runs of a window that is older than that have ended, but few: it is not asked for again. */
const SETTLED_AFTER_S = 600;
/** So few at once that the daemon has connections left for others. */
const AT_ONCE = 3;

const settled = new Map<string, Stats>();

/** Of all runs in the span up to now, oldest first. What was asked before is not asked again, but the newest windows. */
export async function statsOfWindows(span: Span, signal: AbortSignal): Promise<Window[]> {
  const { windows, seconds } = SPANS[span];
  const now = Math.floor(Date.now() / 1000);
  const last = Math.floor(now / seconds) * seconds;
  const starts = Array.from({ length: windows }, (_, index) => last - (windows - 1 - index) * seconds);
  const found: Window[] = [];
  for (let index = 0; index < starts.length; index += AT_ONCE) {
    const some = starts.slice(index, index + AT_ONCE);
    found.push(...(await Promise.all(some.map((from) => statsOf(from, from + seconds, now, signal)))));
  }
  return found;
}

async function statsOf(from: number, to: number, now: number, signal: AbortSignal): Promise<Window> {
  const key = `${from}/${to}`;
  const known = settled.get(key);
  if (known) return { from, stats: known };
  const stats = await get<Stats>('/stats', { from: instant(from), to: instant(to) }, signal);
  if (to + SETTLED_AFTER_S < now) settled.set(key, stats);
  return { from, stats };
}

function instant(seconds: number): string {
  return new Date(seconds * 1000).toISOString();
}
