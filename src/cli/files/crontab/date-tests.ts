import { DAY_OF_MONTH, DAY_OF_WEEK } from '../../../core/cron/cron-fields.ts';

/** A test of the date that decides whether the rest of a command runs. */
export interface DateTest {
  asks: 'weekday' | 'monthDay' | 'tomorrow' | 'week' | 'count';
  /** Days on which it runs, for `weekday` (Sunday is 0) and `monthDay`; null: the test is not so simple. */
  values: ReadonlySet<number> | null;
}

const MAX_LENGTH = 4096;
const TEST =
  /\s*(?:\[\[?\s(.*?)\s\]\]?|(?:\/usr)?(?:\/bin\/)?test\s(.*?)|\(\((.*?)\)\))\s*(&&|\|\||;\s*then\b)/sy;

/** Of the tests that stand before a command, one after the other. */
export function dateTestsIn(command: string): DateTest[] {
  const text = command.slice(0, MAX_LENGTH).replace(/^\s*if\s+(?=\S)/, '');
  const found: DateTest[] = [];
  for (let at = 0; ;) {
    TEST.lastIndex = at;
    const [all, bracket, word, sum, then = ''] = TEST.exec(text) ?? [];
    if (all === undefined) return found;
    found.push(...testsOf(bracket ?? word ?? sum ?? '', then === '||'));
    if (then === '||') return found;
    at += all.length;
  }
}

const DATE = /(?:\$\(|`)\s*(?:\/[\w/]*\/)?date\s([^)`]*)[)`]/g;

function testsOf(test: string, isNegated: boolean): DateTest[] {
  return [...test.matchAll(DATE)].flatMap(([call, asked = '']): DateTest[] => {
    const [, format = ''] = /\+["']?%([-_^]?[a-zA-Z])["']?\s*(?:\s|$)/.exec(`${asked} `) ?? [];
    const isTomorrow = /(?:-d|--date)[ =]*["']?(?:tomorrow|next day|\+? ?1 ?day)/.test(asked);
    const letter = format.at(-1) ?? '';
    if (isTomorrow) return 'de'.includes(letter) && letter !== '' ? [{ asks: 'tomorrow', values: null }] : [];
    if (/(?:-d|--date|-v)/.test(asked) || letter === '') return [];
    if ('VUW'.includes(letter)) return [{ asks: 'week', values: null }];
    const rest = test.replace(call, ' DATE ');
    if ('js'.includes(letter)) return /%\s*\d/.test(rest) ? [{ asks: 'count', values: null }] : [];
    const asks = 'uwaA'.includes(letter) ? 'weekday' : 'de'.includes(letter) ? 'monthDay' : null;
    return asks === null ? [] : [{ asks, values: valuesOf(rest, letter, isNegated) }];
  });
}

const COMPARED = /^["']?\s*DATE\s*["']?\s*(-eq|-ne|-lt|-le|-gt|-ge|==?|!=)\s*["']?(\w{1,9})["']?$/;

/** Null: it is no comparison with one value. `letter`: what date is asked for. */
function valuesOf(test: string, letter: string, isNegated: boolean): Set<number> | null {
  const [, operator = '', text = ''] = COMPARED.exec(test.trim()) ?? [];
  const isName = letter.toLowerCase() === 'a';
  const value = isName ? DAY_OF_WEEK.names.indexOf(text.slice(0, 3).toUpperCase()) : Number(text);
  if (operator === '' || (isName ? value < 0 || operator.startsWith('-') : !/^\d{1,2}$/.test(text)))
    return null;
  const field = 'de'.includes(letter) ? DAY_OF_MONTH : DAY_OF_WEEK;
  const days = Array.from({ length: field.max - field.min + 1 }, (_, index) => field.min + index);
  // %u counts Sunday as 7, and %w as 0.
  const asked = (day: number) => (letter === 'u' && day === 0 ? 7 : day);
  const chosen = days.filter((day) => holds(asked(day), operator, value) !== isNegated);
  return chosen.length === 0 || chosen.length === days.length ? null : new Set(chosen);
}

function holds(day: number, operator: string, value: number): boolean {
  switch (operator) {
    case '-eq':
    case '=':
    case '==':
      return day === value;
    case '-ne':
    case '!=':
      return day !== value;
    case '-lt':
      return day < value;
    case '-le':
      return day <= value;
    case '-gt':
      return day > value;
    default:
      return day >= value;
  }
}
