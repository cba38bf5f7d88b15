const [MINUTE, HOUR, DAY] = [60, 3600, 86_400];

/** In milliseconds. `m` is a minute, and a month has no length. */
const UNITS: Readonly<Record<string, number>> = Object.fromEntries(
  (
    [
      [1, 'ms msec millisecond milliseconds'],
      [1000, 's sec secs second seconds'],
      [1000 * MINUTE, 'm min mins minute minutes'],
      [1000 * HOUR, 'h hr hrs hour hours'],
      [1000 * DAY, 'd day days'],
      [7000 * DAY, 'w week weeks'],
    ] as const
  ).flatMap(([ms, names]) => names.split(' ').map((name) => [name, ms])),
);

const PART = /[ \t]*(\d{1,12}(?:\.\d{1,6})?)[ \t]*([a-z]{1,12})/iy;
const ISO = /^P(?:(\d{1,9})W)?(?:(\d{1,9})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9})S)?)?$/;

/** The whole seconds of `90s`, `1h30m`, `5 minutes`, `1d 12h`, `PT5M`. Null: it is none, or a part of a second is left. */
export function secondsOf(duration: string): number | null {
  const text = duration.trim();
  const ms = text.startsWith('P') ? isoMs(text) : partsMs(text);
  return ms > 0 && Number.isInteger(ms / 1000) ? ms / 1000 : null;
}

function isoMs(text: string): number {
  const [, weeks = 0, days = 0, hours = 0, minutes = 0, seconds = 0] = ISO.exec(text) ?? [];
  const hour = (Number(weeks) * 7 + Number(days)) * 24 + Number(hours);
  return ((hour * 60 + Number(minutes)) * 60 + Number(seconds)) * 1000;
}

function partsMs(text: string): number {
  let [at, ms] = [0, 0];
  while (at < text.length) {
    PART.lastIndex = at;
    const [found = '', count = '', unit = ''] = PART.exec(text) ?? [];
    const size = unit === 'M' ? undefined : UNITS[unit.toLowerCase()];
    if (size === undefined) return 0;
    ms += Math.round(Number(count) * size);
    at += found.length;
  }
  return ms;
}
