import { MAX_INTERVAL_SECONDS } from '../instant.ts';
import { DAY_OF_MONTH, DAY_OF_WEEK, type Field, MONTH, quoted, valueOf, written } from './cron-fields.ts';
import { foreignFault, foreignQuestion } from './foreign/foreign-forms.ts';

const KNOWN_NICKNAMES = '@yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly';
const SHAPE = 'minute, hour, day of month, month, day of week, or 6 with second first';

/** The fault of an expression as a whole, given its number of fields. Null: none. */
export function explainShape(expression: string, fields: number): string | null {
  const strange = /[^\t\x20-\x7e]/u.exec(expression);
  if (strange) return explainCharacter(strange[0], strange.index + 1);
  const text = expression.trim();
  const column = expression.length - expression.trimStart().length + 1;
  const zone = /^(?:CRON_)?TZ=(\S*)/i.exec(text);
  if (zone) {
    return `column ${column}: ${quoted(zone[0])}: the zone goes into the field timezone (${quoted(zone[1] ?? '')})`;
  }
  if (fields === 5 || fields === 6) return null;
  const foreign = foreignFault(text);
  if (foreign !== null) return `column ${column}: ${foreign}`;
  if (text.startsWith('@')) return `column ${column}: ${explainNickname(text)}`;
  if (fields === 7) {
    const { index } = /\S+$/.exec(expression.trimEnd()) ?? { index: 0 };
    return `column ${index + 1}: there is no year field; leave it out (startAt and endAt bound a schedule)`;
  }
  return `must have 5 fields (${SHAPE}); this has ${fields}`;
}

/** What is said of five or six fields with faults: they may be those of another system. */
export function explainFields(fields: readonly string[], faults: readonly string[]): string {
  const foreign = foreignFault(fields.join(' '));
  if (foreign !== null) return `column 1: ${foreign}`;
  const isAsked = faults.some((fault) => fault.includes('“?”'));
  return faults.join('; ') + (isAsked ? foreignQuestion(fields) : '');
}

function explainCharacter(character: string, column: number): string {
  const code = `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
  if (/\s/.test(character)) return `column ${column}: ${code} does not separate fields; write a space`;
  const dash = /\p{Pd}/u.test(character) ? '; write -' : '';
  return `column ${column}: ${code} is not an ASCII character${dash}`;
}

function explainNickname(text: string): string {
  if (/^@reboot\b/i.test(text)) {
    return '@reboot is not known: firelock has no boot of its own; for one single fire use the field at';
  }
  return `${quoted(text)} is not a nickname; known are ${KNOWN_NICKNAMES}, each alone`;
}

const interval = (seconds: number): string =>
  seconds > MAX_INTERVAL_SECONDS ? `at most ${MAX_INTERVAL_SECONDS}: 366 days` : `everySeconds: ${seconds}`;

/** Why an item of a field is refused: the first known mistake that it matches, with the right spelling. */
export function explainItem(field: Field, item: string, items: number): string {
  for (const mistake of MISTAKES) {
    const found = mistake(field, item, items);
    if (found !== null) return item === '' ? found : `${quoted(item)}: ${found}`;
  }
  return `${quoted(item)} is not a value, a range or a step of this field (${rangeText(field)})`;
}

type Mistake = (field: Field, item: string, items: number) => string | null;

const MISTAKES: readonly Mistake[] = [
  (_, item) => (item === '' ? 'an item is empty: a comma stands between two items, and a field is not empty' : null),
  clockTime,
  (_, item) => (item.includes('+') ? 'a + stands only before the whole day-of-week field (+SAT), for AND' : null),
  picking,
  daySpecial,
  nthWeekday,
  badStep,
  valueWithStep,
  (_, item) => (item.startsWith('/') ? `a step needs a range; write *${item}` : null),
  (_, item) => (/^\*\d+$/.test(item) ? `write */${item.slice(1)} for a step` : null),
  backwards,
  unknownValue,
];

function clockTime(_: Field, item: string): string | null {
  const [, hour, minute] = /^(\d+):(\d+)/.exec(item) ?? [];
  if (!item.includes(':')) return null;
  if (hour === undefined) return 'a : has no meaning here';
  return `a time of day is two fields: minute ${Number(minute)}, hour ${Number(hour)}`;
}

function picking(field: Field, item: string): string | null {
  if (item === '?') return 'write * for all, or H to have one picked';
  if (/^\?\/\d+$/.test(item)) return `write H${item.slice(1)}`;
  const tilde = /^(\w+)?~(\w+)?$/.exec(item);
  if (tilde) return `write H(${tilde[1] ?? field.min}-${tilde[2] ?? field.max})`;
  if (!/^(\?.+|H\d[\w-]*|H-\w*|H-?\(.*)$/i.test(item)) return null;
  return `write H, H(${field.min}-${field.max}) or H/2`;
}

function daySpecial(field: Field, item: string, items: number): string | null {
  const text = item.toUpperCase();
  if (field === DAY_OF_MONTH) return lastOrNearest(text, items);
  if (field === DAY_OF_WEEK) {
    if (text === 'L') return 'write SAT, or 6L for the last Saturday of the month';
    if (/^\w+(-\w+)+L$|^\w+L[-/]/.test(text) && !text.startsWith('JUL'))
      return 'L goes with one day, such as 5L; write a list of them';
    const turned = /^L-?(\d|[A-Z]{3})$/.exec(text)?.[1];
    if (turned !== undefined && valueOf(field, turned) !== null) return `write ${turned}L`;
    return /^(\d+|[A-Z]{3})?W\d*$|^L?W$|^WL$/.test(text) ? 'W belongs to day of month (15W, LW)' : null;
  }
  if (/^\d*L(W|-?\d+)?$/.test(text)) return 'L belongs to day of month (L) and day of week (5L)';
  return /^\d*W\d*$|^WL$/.test(text) ? 'W belongs to day of month (15W, LW)' : null;
}

function lastOrNearest(text: string, items: number): string | null {
  if (text === 'LW' && items > 1) return 'LW stands alone, not in a list';
  if (text === 'WL') return 'write LW';
  if (/^L-\d+W?$/.test(text)) {
    return 'days cannot be counted from the end; write L for the last day, LW for the last weekday, or a number';
  }
  const turned = /^W(\d+)$/.exec(text);
  if (turned) return `write ${turned[1]}W`;
  if (/^(\d+L|L(\d+|[A-Z]{3}))$/.test(text))
    return 'a day with L belongs to day of week (5L: the last Friday); the last day is L';
  if (/^\d+W$/.test(text)) return 'the day before W must be in 1-31';
  if (/^[LW\d]+[-/]|-\d*[LW]+$/.test(text) && /[LW]/.test(text)) return 'L and W go with no range and no step';
  return text === 'W' ? 'write 15W for the weekday nearest to the 15th, or LW' : null;
}

function nthWeekday(field: Field, item: string): string | null {
  const hash = item.indexOf('#');
  if (hash < 0) return null;
  if (field !== DAY_OF_WEEK) return '# belongs to day of week (5#2: the second Friday)';
  const [day, nth] = [item.slice(0, hash), item.slice(hash + 1)];
  if (day !== '' && /^L$/i.test(nth)) return `write ${day}L`;
  const range = /^(\w+)-(\w+)$/.exec(day);
  if (range) return `# goes with one day; write ${range[1]}#${nth},…,${range[2]}#${nth}`;
  if (day !== '' && valueOf(field, day) === null) return `${quoted(day)} is not a day of the week (0-7 or SUN-SAT)`;
  return 'write 5#2 for the second Friday: a day in 0-7 or SUN-SAT, then 1-5';
}

function valueWithStep(field: Field, item: string): string | null {
  const [, from, step] = /^(\w+)\/(\d+)$/.exec(item) ?? [];
  if (from === undefined || valueOf(field, from) === null || Number(step) < 1) return null;
  const last = written(field, field.max, /\D/.test(from));
  return `a step needs a range; write ${from}-${last}/${step}`;
}

function badStep(field: Field, item: string): string | null {
  const slash = item.indexOf('/');
  if (slash < 0) return null;
  const step = item.slice(slash + 1);
  if (step === '') return 'a step is missing after the /';
  if (!/^\d+$/.test(step)) return `${quoted(step)} is not a step: a number from 1`;
  if (Number(step) < 1) return 'a step is at least 1';
  const max = field.max - field.min + 1;
  if (Number(step) <= max) return null;
  const unit = { second: 1, minute: 60, hour: 3600 }[field.key as string];
  if (unit === undefined) return `a step is at most ${max}`;
  const seconds = Number(step) * unit;
  return `a step is at most ${max}; for an interval use ${seconds > MAX_INTERVAL_SECONDS ? 'everySeconds, ' : ''}${interval(seconds)}`;
}

/** `22-2` and `FRI-MON`: a range goes upwards; a range over the end must be written as two. */
function backwards(field: Field, item: string): string | null {
  const [, from = '', to = '', stepText] = /^(\w+)-(\w+)(?:\/(\d+))?$/.exec(item) ?? [];
  const [first, last] = [valueOf(field, from), valueOf(field, to)];
  if (first === null || last === null || first <= last) return null;
  if (first > field.written || last < field.min) return null;
  const step = Number(stepText ?? 1);
  // The end of the first part: a week that ends on a Sunday includes the Sunday on which it begins.
  const end = field === DAY_OF_WEEK && step === 1 ? 7 : field.max;
  const size = field.max - field.min + 1;
  const over = first + (Math.floor((field.max - first) / step) + 1) * step - size;
  const restart = end === 7 ? 1 : over;
  const part = (start: number, stop: number): string =>
    (start === stop ? [start] : [start, stop]).map((value) => written(field, value, /\D/.test(from))).join('-') +
    (stepText === undefined || start === stop ? '' : `/${stepText}`);
  const parts = [part(first, end), ...(restart <= last ? [part(restart, last)] : [])];
  return `a range goes upwards; write ${parts.join(',')}`;
}

function unknownValue(field: Field, item: string): string | null {
  const range = /^(\w+)(?:-(\w+))?(?:\/\d+)?$/.exec(item);
  if (!range) return /^-\d/.test(item) || /\w-$/.test(item) ? 'a range has two ends, such as 1-5' : null;
  const [, from = '', to] = range;
  if (to === undefined) return outOfRange(field, from);
  for (const text of [from, to]) {
    const fault = outOfRange(field, text);
    if (fault !== null) return `${quoted(text)}: ${fault.replace('; write 0', '')}`;
  }
  return null;
}

function outOfRange(field: Field, text: string): string | null {
  const value = valueOf(field, text);
  const allowed = `must be in ${rangeText(field)}`;
  if (value === null) return `${explainName(field, text)}; ${allowed}`;
  if (value >= field.min && value <= field.written) return null;
  if (field === DAY_OF_WEEK && /^(19|20)\d\d$/.test(text)) {
    return 'there is no year field, and 6 fields begin with second';
  }
  if (field.min === 0 && value === field.max + 1) return `${allowed}; write 0`;
  if (field.min === 1 && value === 0) return `${allowed}; the first is 1`;
  return field === DAY_OF_MONTH ? `${allowed}; the last day of any month is L` : allowed;
}

const FULL_NAMES = [...MONTH.full, ...DAY_OF_WEEK.full].map((name) => name.toUpperCase());

function explainName(field: Field, text: string): string {
  const upper = text.toUpperCase();
  const short = upper.slice(0, 3);
  if (upper.length < 3 || !FULL_NAMES.some((name) => name.startsWith(upper))) {
    return field.names.length > 0 ? 'neither a number nor a known name' : 'not a number';
  }
  if (valueOf(field, short) !== null) return `write ${short}`;
  return `${short} belongs to ${valueOf(MONTH, short) === null ? DAY_OF_WEEK.label : MONTH.label}`;
}

function rangeText(field: Field): string {
  const names = field.names.length > 0 ? ` or ${field.names[0]}-${field.names.at(-1)}` : '';
  return `${field.min}-${field.written}${names}`;
}
