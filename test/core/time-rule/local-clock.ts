/** What the clock on the wall shows in a zone, in minutes since 1970-01-01 00:00 of its own calendar. */
export type LocalClock = (utcMinute: number) => number;

const clocks = new Map<string, LocalClock>();

/**
 * Read off Intl's formatted date and time: every six hours; where the offset changes in between, every hour, and each minute of an hour in
 * which it changes.
 */
export function localClock(zone: string): LocalClock {
  const known = clocks.get(zone);
  if (known) return known;
  const shown = reader(zone);
  const offsets = new Map<number, number>();
  const offsetAt = (utcMinute: number): number => {
    let offset = offsets.get(utcMinute);
    if (offset === undefined) {
      offset = shown(utcMinute) - utcMinute;
      offsets.set(utcMinute, offset);
    }
    return offset;
  };
  /** The offset during a span of minutes, unless it changes in it. */
  const steady = (utcMinute: number, span: number): number | undefined => {
    const from = Math.floor(utcMinute / span) * span;
    const offset = offsetAt(from);
    return offset === offsetAt(from + span) ? offset : undefined;
  };
  const clock: LocalClock = (utcMinute) =>
    utcMinute + (steady(utcMinute, 360) ?? steady(utcMinute, 60) ?? offsetAt(utcMinute));
  clocks.set(zone, clock);
  return clock;
}

function reader(timeZone: string): LocalClock {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone,
    calendar: 'gregory',
    hourCycle: 'h23',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
  });
  return (utcMinute) => {
    const text = format.format(utcMinute * 60_000);
    const [, month, day, year, hour, minute] = /^(\d\d)\/(\d\d)\/(\d+), (\d\d):(\d\d)$/.exec(text) ?? [];
    if (minute === undefined) throw new Error(`Intl wrote ${text}`);
    return Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hour), Number(minute)) / 60_000;
  };
}
