/** The five fields of a line, as firelock writes them. */
interface Line {
  cron: string;
  command: string;
}

/**
 * What a field of firelock says better than the line does: a test of the day before its command, and two day fields that are often
 * meant together. The line is carried over as it is: what the shell makes of a test depends on its zone and on what follows.
 */
export function dayHints({ cron, command }: Line): string[] {
  const fields = cron.split(' ');
  if (fields.length !== 5) return [];
  return [...testHints(fields, command), ...eitherHints(fields)];
}

const TEST = /^\s*(?:if\s+)?(\[\[?\s.*?\s\]\]?|test\s.*?|\(\(.*?\)\))\s*(?:&&|\|\||;\s*then\b)/s;
const DATE = /(?:\$\(|`)\s*(?:\/\S*\/)?date\s([^)`]*)/g;

/** Of a test that decides whether the rest of the command runs. */
function testHints(fields: readonly string[], command: string): string[] {
  const [, test = ''] = TEST.exec(command) ?? [];
  const hints = [...test.matchAll(DATE)].map(([, asked = '']) => hintFor(asked, test, fields));
  return [...new Set(hints)].filter((hint) => hint !== null);
}

function hintFor(asked: string, test: string, fields: readonly string[]): string | null {
  const [, format = ''] = /\+["']?%([-_^]?[a-zA-Z])["']?\s*(?:\s|$)/.exec(`${asked} `) ?? [];
  const isTomorrow = /(?:-d|--date)[ =]*["']?(?:tomorrow|next day|\+? ?1 ?day)/.test(asked);
  if (/(?:-d|--date|-v)/.test(asked) && !isTomorrow) return null;
  const [, weekday = '*'] = fields.slice(3);
  if (isTomorrow)
    return /[de]$/.test(format)
      ? `its command asks whether tomorrow is the first of a month: ${cronWith(fields, 'L', '*')} without that test fires on the last day only`
      : null;
  if (/[VUW]$/.test(format))
    return `its command asks for the number of the week, which jumps at the end of a year: every: {n: 2, unit: week, from: DATE} without that test counts weeks from a date of yours`;
  if (/[uwaA]$/.test(format))
    return `its command asks for the day of the week: in the last field of cron it needs no test, as ${cronWith(fields, '*', 'MON-FRI')} for working days`;
  if (/[js]$/.test(format) && /%\s*\d/.test(test.replace(DATE, '')))
    return `its command counts days: every: {n: 2, unit: day, from: DATE} without that test counts them from a date of yours`;
  if (/[de]$/.test(format) && isOneDay(weekday))
    return `its command asks for the day of the month: ${cronWith(fields, '*', `${weekday}#1`)} without such a test fires in the first seven days only, #2 in the next seven, ${weekday}L on the last of a month`;
  return null;
}

/** cron fires on either of two days: `0 9 1-7 * 1` on the first seven days, and on each Monday. */
function eitherHints(fields: readonly string[]): string[] {
  const [, , monthDays = '', , weekday = ''] = fields;
  const [, from, to] = /^(\d+)-(\d+)$/.exec(monthDays) ?? [];
  const first = Number(from);
  if (!isOneDay(weekday) || Number(to) - first !== 6 || first % 7 !== 1) return [];
  const nth = `${weekday}#${(first + 6) / 7}`;
  return [
    `it fires on the days ${monthDays} and, besides, on each day ${weekday} of the week, as cron does; if only that weekday among these days is meant, write ${cronWith(fields, '*', nth)}`,
  ];
}

function isOneDay(weekday: string): boolean {
  return /^(?:[0-7]|[a-z]{3})$/i.test(weekday);
}

function cronWith([minute, hour, , month]: readonly string[], monthDays: string, weekday: string): string {
  return `cron: "${[minute, hour, monthDays, month, weekday].join(' ')}"`;
}
