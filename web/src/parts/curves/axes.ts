const MOST_VALUES = 5;

/** Round values from 0 to at least the highest: 1, 2 or 5 times a power of ten apart. */
export function valueTicks(highest: number, whole: boolean): number[] {
  const rough = (highest > 0 ? highest : 1) / MOST_VALUES;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((times) => times * power).find((one) => one >= rough) ?? rough;
  const apart = whole ? Math.max(1, step) : step;
  const count = Math.ceil((highest > 0 ? highest : 1) / apart - 1e-9);
  return Array.from({ length: count + 1 }, (_, index) => index * apart);
}

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const STEPS = [
  ...[1, 5, 15, 30, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE],
  ...[HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 30 * DAY, 365 * DAY],
];

/** Round moments of a clock that is `offset` ahead of UTC, `most` of them or fewer; all in seconds. */
export function timeTicks(from: number, to: number, most: number, offset: number): number[] {
  const step = STEPS.find((one) => (to - from) / one <= most) ?? to - from;
  const first = Math.ceil((from + offset) / step) * step - offset;
  return Array.from({ length: Math.max(0, Math.floor((to - first) / step) + 1) }, (_, n) => first + n * step);
}
