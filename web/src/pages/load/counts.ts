interface Bucket {
  at: string;
  fires: number;
}

export interface Bar {
  from: number;
  to: number;
  fires: number;
}

/** Bars of equal length from the first bucket's bar on, also where nothing fires; so many that `hours` are covered. */
export function barsOf(items: readonly Bucket[], from: number, hours: number, barMs: number): Bar[] {
  const first = Math.floor(from / barMs);
  const bars = Array.from({ length: Math.ceil((hours * 3_600_000) / barMs) + 1 }, (_, index): Bar => ({
    from: (first + index) * barMs,
    to: (first + index + 1) * barMs,
    fires: 0,
  }));
  for (const { at, fires } of items) {
    const bar = bars[Math.floor(Date.parse(at) / barMs) - first];
    if (bar) bar.fires += fires;
  }
  return bars;
}

const MAX_HERDS = 5;
/** A minute is a herd where so many times more fires than in the middle one of those in which something fires. */
const TIMES_THE_MEDIAN = 3;
const LEAST = 10;

/** The minutes that stand out, the busiest first. */
export function herdsOf(items: readonly Bucket[]): Bucket[] {
  const sorted = items.toSorted((a, b) => b.fires - a.fires);
  const median = sorted[Math.floor(sorted.length / 2)]?.fires ?? 0;
  const isHerd = ({ fires }: Bucket) => fires >= LEAST && (fires >= TIMES_THE_MEDIAN * median || sorted.length === 1);
  return sorted.filter(isHerd).slice(0, MAX_HERDS);
}

export interface Day {
  day: string;
  /** By the hour of the zone's clock. Null: outside of the period. */
  hours: (number | null)[];
}

/** Hours by day, as the clock of a zone shows them; an hour that is repeated counts twice. */
export function daysOf(
  bars: readonly Bar[],
  { dayOf, hourOf }: { dayOf: (at: number) => string; hourOf: (at: number) => number },
): Day[] {
  const days = new Map<string, Day>();
  for (const { from, fires } of bars) {
    const day = dayOf(from);
    const row = days.get(day) ?? { day, hours: Array.from({ length: 24 }, () => null) };
    row.hours[hourOf(from)] = (row.hours[hourOf(from)] ?? 0) + fires;
    days.set(day, row);
  }
  return [...days.values()];
}
