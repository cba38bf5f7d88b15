import type { Random } from '../../chaos/random.ts';

/** A random expression, some of whose values come from a local moment (minutes since 1970), so that it matters there. */
export function expressionNear(random: Random, localMinute: number): string {
  if (random.chance(0.02)) return random.pick(NICKNAMES);
  const date = new Date(localMinute * 60_000);
  const around = (value: number, low: number, high: number): number =>
    Math.min(high, Math.max(low, value + random.pick([-2, -1, -1, 0, 0, 0, 1, 1, 2])));
  const hour = (): number => (random.chance(0.75) ? around(date.getUTCHours(), 0, 23) : whole(random, 0, 23));
  const fields = [
    plain(random, 0, 59, () => random.pick([0, 0, 15, 30, 45, 59, whole(random, 0, 59), whole(random, 0, 59)])),
    hours(random, hour),
    ...dayFields(random, date),
  ];
  if (random.chance(0.12)) fields.unshift(seconds(random));
  return fields.join(' ');
}

const NICKNAMES = ['@yearly', '@annually', '@monthly', '@weekly', '@daily', '@midnight', '@hourly', '@Daily'];
const MONTHS = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC'];
const WEEKDAYS = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT'];

/** At least `low`, at most `high`. */
function whole(random: Random, low: number, high: number): number {
  return low + Math.floor(random.next() * (high - low + 1));
}

function seconds(random: Random): string {
  return random.chance(0.1) ? '*' : plain(random, 0, 59, () => whole(random, 0, 59));
}

function hours(random: Random, hour: () => number): string {
  if (random.chance(0.3)) return random.pick(['*', '*', '*', '*/1', '0-23', '0-23/1', '0-11,12-23', '*/2,1-23/2']);
  return plain(random, 0, 23, hour);
}

/** A value, a list, a range, or a step on either or on all. */
function plain(random: Random, low: number, high: number, value: () => number): string {
  const kind = random.next();
  if (kind < 0.5) return String(value());
  if (kind < 0.62) return `*/${whole(random, 2, Math.max(2, Math.floor(high / 2)))}`;
  if (kind < 0.78) return range(random, low, high, value, false);
  if (kind < 0.86) return range(random, low, high, value, true);
  const parts = [value(), value(), random.chance(0.5) ? whole(random, low, high) : value()].map(String);
  if (random.chance(0.3)) parts.push(range(random, low, high, value, random.chance(0.3)));
  return parts.join(',');
}

function range(random: Random, low: number, high: number, value: () => number, stepped: boolean): string {
  const ends = [value(), random.chance(0.5) ? value() : whole(random, low, high)];
  const text = `${Math.min(...ends)}-${Math.max(...ends)}`;
  return stepped ? `${text}/${whole(random, 1, 5)}` : text;
}

/** Day of month, month, day of week. */
function dayFields(random: Random, date: Date): string[] {
  if (random.chance(0.4)) return ['*', '*', '*'];
  const day = (): number =>
    random.chance(0.6) ? clamp(date.getUTCDate() + whole(random, -1, 1), 31) : whole(random, 1, 31);
  const weekday = (): number => (date.getUTCDay() + whole(random, random.chance(0.5) ? 0 : -3, 1) + 7) % 7;
  const month = random.chance(0.75) ? random.pick(['*', '*', '*', '*/1', '*/2']) : months(random, date);
  const kind = random.next();
  if (kind < 0.4) return [random.pick(['*', '*', '*/1']), month, weekdays(random, weekday)];
  if (kind < 0.7) return [monthDays(random, day), month, random.pick(['*', '*', '*/1'])];
  if (kind < 0.85) return [monthDays(random, day), month, weekdays(random, weekday)];
  return [monthDays(random, day), month, `+${weekdays(random, weekday)}`];
}

function clamp(value: number, high: number): number {
  return Math.min(high, Math.max(1, value));
}

function months(random: Random, date: Date): string {
  const near = (): number => clamp(date.getUTCMonth() + 1 + whole(random, -1, 1), 12);
  if (random.chance(0.4)) return named(random, MONTHS, near() - 1);
  if (random.chance(0.3)) return `${near()},${named(random, MONTHS, near() - 1)}`;
  const ends = [near(), whole(random, 1, 12)];
  if (random.chance(0.3))
    return ends
      .map((end) => MONTHS[end - 1])
      .sort(byPlace(MONTHS))
      .join('-');
  return plain(random, 1, 12, near);
}

function monthDays(random: Random, day: () => number): string {
  const kind = random.next();
  if (kind < 0.1) return 'L';
  if (kind < 0.17) return 'LW';
  if (kind < 0.3) return `${day()}W`;
  if (kind < 0.37) return `${day()},L`;
  if (kind < 0.42) return `${day()}W,${day()}`;
  if (kind < 0.45) return '1-31';
  return plain(random, 1, 31, day);
}

function weekdays(random: Random, weekday: () => number): string {
  const kind = random.next();
  const one = (): string => (random.chance(0.3) ? named(random, WEEKDAYS, weekday()) : String(weekday()));
  if (kind < 0.3) return random.chance(0.15) ? '7' : one();
  if (kind < 0.4) return `${one()}L`;
  if (kind < 0.52) return `${one()}#${whole(random, 1, 5)}`;
  if (kind < 0.6)
    return random.pick(['MON-FRI', '1-5', '0-6', '1-7', '0-7', '5-7', '6-7', 'mon-Fri', 'SUN-SAT', '6,7']);
  if (kind < 0.68) return random.pick(['*/2', '*/3', '1-5/2', '1-7/2', '0-6/3', 'MON-FRI/2']);
  if (kind < 0.76) return [`${one()}#${whole(random, 1, 5)}`, `${one()}L`].join(',');
  if (kind < 0.82) return `1-5,${weekday()}L`;
  return [one(), one()].join(',');
}

function named(random: Random, names: string[], place: number): string {
  const name = names[place] ?? '';
  return random.pick([name, name, name.toLowerCase(), name.charAt(0) + name.slice(1).toLowerCase()]);
}

function byPlace(names: string[]) {
  return (one: string | undefined, other: string | undefined): number =>
    names.indexOf(one ?? '') - names.indexOf(other ?? '');
}
