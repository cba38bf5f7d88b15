import { timeText } from './zone.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** `2026-11-22T09:00:00`, as clocks show it in the zone. */
export function localText(at: string | number, zone: string): string {
  return timeText(at, zone).slice(0, 19).replace(' ', 'T');
}

/**
 * The moment at which clocks in the zone show `2026-11-22T09:00` or `2026-11-22T09:00:00`: the first one where they show it
 * twice, the first one afterwards where they never do. Null: no such date.
 */
export function instantOf(local: string, zone: string): number | null {
  const wanted = local.length === 16 ? `${local}:00` : local;
  const asUtc = Date.parse(`${wanted}Z`);
  if (Number.isNaN(asUtc)) return null;
  const offsets = [offsetAt(asUtc - DAY_MS, zone), offsetAt(asUtc + DAY_MS, zone)];
  const candidates = offsets.map((offset) => asUtc - offset).sort((a, b) => a - b);
  return candidates.find((at) => localText(at, zone) === wanted) ?? firstShowing(wanted, asUtc, zone);
}

/** `day`: `2026-11-22`. */
export function startOfDay(day: string, zone: string): number {
  return instantOf(`${day}T00:00:00`, zone) ?? Date.parse(`${day}T00:00:00Z`);
}

export function addDays(day: string, days: number): string {
  return new Date(Date.parse(`${day}T00:00:00Z`) + days * DAY_MS).toISOString().slice(0, 10);
}

/** The first day of the month that the day is in, or of one that lies `months` after it. */
export function startOfMonth(day: string, months = 0): string {
  const [year = 0, month = 1] = day.split('-').map(Number);
  return new Date(Date.UTC(year, month - 1 + months, 1)).toISOString().slice(0, 10);
}

/** 0: Monday. */
export function weekdayOf(day: string): number {
  return (new Date(`${day}T00:00:00Z`).getUTCDay() + 6) % 7;
}

/** How far the zone's clocks are ahead of UTC, in ms. */
export function offsetAt(at: number, zone: string): number {
  return Date.parse(`${localText(at, zone)}Z`) - Math.floor(at / 1000) * 1000;
}

/** Clocks pass over it: they only go forward here, so halving finds where. */
function firstShowing(wanted: string, asUtc: number, zone: string): number {
  let before = asUtc - 1.5 * DAY_MS;
  let after = asUtc + 1.5 * DAY_MS;
  while (after - before > 1000) {
    const middle = Math.floor((before + after) / 2000) * 1000;
    if (localText(middle, zone) >= wanted) after = middle;
    else before = middle;
  }
  return after;
}
