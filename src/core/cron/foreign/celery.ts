import { DAY_OF_MONTH, DAY_OF_WEEK, HOUR, MINUTE, MONTH, SECOND } from '../cron-fields.ts';
import {
  type ForeignFields,
  type Notation,
  NotSayable,
  cronFields,
  listField,
  writtenField,
} from './foreign-fields.ts';

const CELERY: Notation = {
  system: 'Celery',
  range: '-',
  sunday: 0,
  wraps: true,
  stepsFromValue: false,
  stepsOnStar: true,
  names: 'weekdays',
};

const FIELDS = {
  minute: MINUTE,
  hour: HOUR,
  day_of_month: DAY_OF_MONTH,
  month_of_year: MONTH,
  day_of_week: DAY_OF_WEEK,
} as const;

/** What stands in `crontab(…)`: each field has to match. @throws NotSayable */
export function celeryCrontab(text: string, zone: string | null): ForeignFields {
  const given = argumentsOf(text, ['minute', 'hour']);
  const unknown = [...given.keys()].find((name) => !Object.hasOwn(FIELDS, name));
  if (unknown !== undefined) throw new NotSayable(`crontab has no field ${unknown}`);
  const read = (name: keyof typeof FIELDS) =>
    listField(FIELDS[name], (given.get(name) ?? '*').replaceAll(' ', ''), CELERY);
  const parts = {
    second: writtenField(SECOND, new Set([0])),
    minute: read('minute'),
    hour: read('hour'),
    dayOfMonth: read('day_of_month'),
    month: read('month_of_year'),
    dayOfWeek: read('day_of_week'),
    years: null,
  };
  return cronFields(parts, 'both', zone);
}

const UNITS: Readonly<Record<string, number>> = {
  days: 86_400,
  seconds: 1,
  minutes: 60,
  hours: 3600,
  weeks: 604_800,
};

/** What stands in `timedelta(…)`. @throws NotSayable */
export function timedelta(text: string): ForeignFields {
  let seconds = 0;
  for (const [name, count] of argumentsOf(text, ['days', 'seconds'])) {
    const unit = UNITS[name];
    if (unit === undefined)
      throw new NotSayable(`an interval has no ${name} here: it is a number of seconds`);
    seconds += Number(count) * unit;
  }
  if (!Number.isSafeInteger(seconds) || seconds < 1) throw new NotSayable('it is no number of whole seconds');
  return { everySeconds: seconds };
}

const ARGUMENT = /[ \t]*(?:([a-z_]+)[ \t]*=[ \t]*)?(?:'([^']*)'|"([^"]*)"|([\d.+*-]+))[ \t]*(?:,|$)/y;

/** Python's arguments. `places`: names of those without one. Other ones differ between versions. */
function argumentsOf(text: string, places: readonly string[]): Map<string, string> {
  const given = new Map<string, string>();
  const left = text.trimEnd();
  for (let at = 0, place = 0; at < left.length; place += 1) {
    ARGUMENT.lastIndex = at;
    const [found, named, single, double, plain] = ARGUMENT.exec(left) ?? [];
    if (found === undefined)
      throw new NotSayable(`“${left.slice(at, at + 30)}” is no name and value that can be read`);
    const name = named ?? places[place];
    if (name === undefined)
      throw new NotSayable('versions of Celery differ about the order of the fields: name them');
    if (given.has(name)) throw new NotSayable(`${name} is given twice`);
    given.set(name, single ?? double ?? plain ?? '');
    at += found.length;
  }
  return given;
}
