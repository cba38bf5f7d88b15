import { type Selection, select } from './expression.ts';
import { type LocalClock, localClock } from './local-clock.ts';
import type { DayCase } from './dates-oracle.ts';

const DAY = 1440;
const DAY_MS = 86_400_000;

export function walkOf(one: DayCase): Walk {
  return { ...one, clock: localClock(one.zone), selections: one.expressions.map(select) };
}

export interface Walk extends DayCase {
  clock: LocalClock;
  selections: Selection[];
}

const dates = new Map<number, string>();

export function dateOf(day: number): string {
  const known = dates.get(day) ?? new Date(day * DAY_MS).toISOString().slice(0, 10);
  dates.set(day, known);
  return known;
}

export function dayOf({ clock }: Walk, at: number): number {
  return Math.floor(clock(Math.floor(at / 60_000)) / DAY);
}

export function beginOf(walk: Walk, day: number): number {
  const minute = shownAt(walk, day * DAY)?.minute ?? shownAt(walk, (day + 1) * DAY)?.minute ?? Infinity;
  return minute * 60_000;
}

/** The first `count` after `from` of the fires that a day has by each expression that selects it, made on another day. */
export function firesOn(walk: Walk, day: number, to: number, count: number): number[] {
  return walk.selections
    .filter((one) => one.day(day))
    .flatMap((one) => (one.periodic ? periodicFires : timedFires)(walk, one, to, count));
}

function timedFires(walk: Walk, { hours, minutes, seconds }: Selection, to: number, count: number): number[] {
  const found: number[] = [];
  if ((shownAt(walk, to * DAY + DAY - 1)?.minute ?? Infinity) * 60_000 + 59_000 < walk.from) return found;
  for (let minute = 0; minute < DAY && found.length < count; minute += 1) {
    if (!hours.has(Math.floor(minute / 60)) || !minutes.has(minute % 60)) continue;
    const shown = shownAt(walk, to * DAY + minute);
    if (shown === null) continue;
    for (const second of shown.swallowed ? [0] : seconds) {
      const at = shown.minute * 60_000 + second * 1000;
      if (at > walk.from && at !== found.at(-1)) found.push(at);
    }
  }
  return found;
}

function periodicFires(walk: Walk, { minutes, seconds }: Selection, to: number, count: number): number[] {
  const found: number[] = [];
  for (let minute = to * DAY - 900; minute < to * DAY + DAY + 900 && found.length < count; minute += 1) {
    const local = walk.clock(minute);
    if (Math.floor(local / DAY) !== to || !minutes.has(local % 60)) continue;
    found.push(...seconds.map((second) => minute * 60_000 + second * 1000).filter((at) => at > walk.from));
  }
  return found;
}

interface Shown {
  minute: number;
  /** A gap swallowed it: the clock shows a later time there. */
  swallowed: boolean;
}

const furthest = new WeakMap<LocalClock, Map<number, number>>();

/** The first minute at which a clock that never goes backwards shows a local minute, or has passed it; null: its date was left out. */
export function shownAt({ clock }: Walk, local: number): Shown | null {
  let minute = local - offsetNear(clock, Math.floor(local / DAY));
  while (clock(minute) < local) minute += 1;
  if (clock(minute) === local) return { minute, swallowed: false };
  let latest = -Infinity;
  for (let before = minute - 2 * DAY; before < minute; before += 1) latest = Math.max(latest, clock(before));
  return clock(minute) - latest - 1 >= DAY ? null : { minute, swallowed: true };
}

/** The greatest offset around a day. */
function offsetNear(clock: LocalClock, day: number): number {
  const known = furthest.get(clock) ?? new Map<number, number>();
  furthest.set(clock, known);
  let offset = known.get(day);
  if (offset === undefined) {
    const hours = Array.from({ length: 97 }, (_, index) => day * DAY + (index - 36) * 60);
    offset = Math.max(...hours.map((minute) => clock(minute) - minute));
    known.set(day, offset);
  }
  return offset;
}
