import { isoInstant, MAX_INTERVAL_SECONDS } from '../../instant.ts';
import { quoted } from '../cron-fields.ts';
import {
  celeryCrontab,
  eventBridgeFields,
  jenkinsFields,
  nomadFields,
  quartzFields,
  timedelta,
} from './foreign-cron.ts';
import { type ForeignFields, instantIn, NotSayable } from './foreign-fields.ts';
import { rruleFields } from './rrule.ts';
import { systemdFields } from './systemd.ts';

/** `zone`: of local times; null: it is not said. @throws NotSayable */
type Read = (text: string, zone: string | null) => ForeignFields;

/** What a system writes beside the forms below. */
const SYSTEM_READERS = {
  quartz: quartzFields,
  eventbridge: eventBridgeFields,
  systemd: systemdFields,
  jenkins: jenkinsFields,
  celery: seconds,
  nomad: nomadFields,
  rrule: rruleFields,
} satisfies Record<string, Read>;

export type System = keyof typeof SYSTEM_READERS;
export const SYSTEMS = Object.keys(SYSTEM_READERS) as System[];

/** A form in which others write times. */
interface Form {
  form: RegExp;
  /** The first group, or else the whole. */
  read: Read;
  /** Follows “is”. */
  name: string;
  /** Whose it is. Absent: only faults of expressions know it. */
  of?: System;
}

const cronOf = (cron: string) => (): ForeignFields => ({ cron });

/** The first that matches counts. None matches an expression of firelock. */
const FORMS: readonly Form[] = [
  { form: /^cron\(([^()]*)\)$/i, read: eventBridgeFields, name: 'EventBridge’s', of: 'eventbridge' },
  { form: /^rate\(([^()]*)\)$/i, read: interval, name: 'EventBridge’s', of: 'eventbridge' },
  { form: /^at\(([^()]*)\)$/i, read: moment, name: 'EventBridge’s', of: 'eventbridge' },
  {
    form: /^(?:DTSTART[:;]|EXDATE[:;]|RRULE:|FREQ=)|;FREQ=/i,
    read: rruleFields,
    name: 'a rule of iCalendar',
    of: 'rrule',
  },
  { form: /^crontab\(([^()]*)\)$/i, read: celeryCrontab, name: 'Celery’s', of: 'celery' },
  { form: /^(?:datetime\.)?timedelta\(([^()]*)\)$/i, read: timedelta, name: 'Python’s', of: 'celery' },
  { form: /^@every[ \t]+(.*)$/i, read: interval, name: 'an interval' },
  { form: /^P[\dTWDHMS]+$/, read: interval, name: 'an interval' },
  {
    form: /^(?:every[ \t]+)?((?:\d[\d.]*[ \t]*[a-z]+[ \t]*)+)$/i,
    read: interval,
    name: 'an interval',
    of: 'systemd',
  },
  {
    form: /^every[ \t]+(second|minute|hour|day)$/i,
    read: (unit) => interval(`1 ${unit}`),
    name: 'an interval',
  },
  {
    form: /^(?:every[ \t]+day|daily)[ \t]+(?:at[ \t]+)?(\d\d?:\d\d)$/i,
    read: systemdFields,
    name: 'a time of day',
  },
  { form: /^\d\d?:\d\d(?::\d\d)?$/, read: systemdFields, name: 'a time of day' },
  { form: /^\d{4}-\d\d-\d\d(?:[T ].*)?$/, read: moment, name: 'a point in time' },
  {
    form: /^(?:hourly|daily|midnight|monthly|yearly|annually)$/i,
    read: (word) => ({ cron: `@${word}` }),
    name: 'a nickname without its @',
  },
  { form: /^weekly$/i, read: systemdFields, name: 'a Monday in systemd, where @weekly is a Sunday' },
  { form: /^(?:@?minutely|@every_minute)$/i, read: cronOf('* * * * *'), name: 'each minute' },
  { form: /^(?:quarterly|semiannually)$/i, read: systemdFields, name: 'systemd’s' },
  {
    form: /^(?=.*(?::|\.\.)|\*-)(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z,.]*(?:[ \t]+|$))?(?:[\d*.,/]+-[\d*.,/~-]+(?:[ \t]+|$))?(?:[\d*.,/]+:[\d*.,/:]+)?(?:[ \t]+[a-z_/]+)?$/i,
    read: systemdFields,
    name: 'systemd’s',
  },
  { form: /^(?=[^?]*\?)(?:[^ \t]+[ \t]+){6}[^ \t]+$/, read: quartzFields, name: 'Quartz’s' },
];

const MAX_LENGTH = 2048;

/** The fields that say what an expression of a system says. @throws NotSayable */
export function translated(expression: string, system: System, zone: string | null): ForeignFields {
  if (expression.length > MAX_LENGTH) throw new NotSayable(`it is longer than ${MAX_LENGTH} characters`);
  const text = expression.trim();
  const known = FORMS.find(({ of, form }) => of === system && form.test(text));
  return known ? fieldsOf(known, text, zone) : bounded(SYSTEM_READERS[system](text, zone));
}

/** What to write in place of an expression in the form of another system; null: it is in none that is known. */
export function foreignFault(text: string): string | null {
  const known = FORMS.find(({ form }) => form.test(text));
  if (!known) return null;
  try {
    const fields = fieldsOf(known, text, null);
    if (fields.count !== undefined)
      throw new NotSayable('COUNT: firelock translate --from rrule says which endAt that is');
    const isGuess = !('timezone' in fields) && !/(?:Z|[+-]\d\d:?\d\d)$/i.test(text);
    const hasInstant = fields.at ?? fields.startAt ?? fields.endAt;
    const inUtc = isGuess && hasInstant !== undefined ? ' (if that is UTC)' : '';
    return `${quoted(text)} is ${known.name}; write ${spelled(fields)}${inUtc}`;
  } catch (error) {
    if (error instanceof NotSayable) return `${quoted(text)} is ${known.name}: ${error.message}`;
    throw error;
  }
}

/** Fields with `?` in one of the last four: elsewhere it means “no value”, and Sunday is 1. */
export function foreignQuestion(fields: readonly string[]): string {
  const isOf = (places: readonly number[]) => places.some((place) => fields[place] === '?');
  const text = fields.join(' ');
  const sunday = '; Quartz and EventBridge count Sunday as 1, so write names of weekdays';
  if (fields.length !== 6) return /\d/.test(fields.at(-1) ?? '') ? sunday : '';
  const [system, read] = isOf([2, 4])
    ? (['EventBridge', eventBridgeFields] as const)
    : (['Quartz', quartzFields] as const);
  try {
    return `; ${system}’s ${text} is ${spelled(read(text, null))} here`;
  } catch (error) {
    if (error instanceof NotSayable) return sunday;
    throw error;
  }
}

function fieldsOf({ form, read }: Form, text: string, zone: string | null): ForeignFields {
  return bounded(read(form.exec(text)?.[1] ?? text, zone));
}

function bounded(fields: ForeignFields): ForeignFields {
  if ((fields.everySeconds ?? 0) > MAX_INTERVAL_SECONDS)
    throw new NotSayable(`an interval is at most ${MAX_INTERVAL_SECONDS} seconds: 366 days`);
  return fields;
}

/** An expression alone, or fields with their values. */
function spelled({ cron, ...others }: ForeignFields): string {
  if (typeof cron === 'string' && Object.keys(others).length === 0) return cron;
  const fields = Object.entries({ ...(cron !== undefined && { cron }), ...others });
  return fields.map(([field, value]) => `${field}: ${JSON.stringify(value)}`).join(', ');
}

function seconds(text: string): ForeignFields {
  if (/^\d{1,9}(?:\.0{1,3})?$/.test(text)) return { everySeconds: Number(text) };
  throw new NotSayable('it is neither crontab(…), nor timedelta(…), nor a number of seconds');
}

function interval(text: string): ForeignFields {
  const seconds = secondsOf(text);
  if (seconds === null) throw new NotSayable('it is no number of whole seconds');
  return { everySeconds: seconds };
}

const MOMENT = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(?::(\d\d)(?:\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?$/i;

function moment(text: string, zone: string | null): ForeignFields {
  const [found, date, time, second = '00', offset] = MOMENT.exec(text.trim()) ?? [];
  if (found === undefined) throw new NotSayable('it has no time of day, as 2027-01-31T09:00:00Z has');
  if (offset === undefined) return { at: instantIn(`${date}T${time}:${second}`, zone) };
  const instant = Date.parse(`${date}T${time}:${second}${offset}`);
  if (Number.isNaN(instant)) throw new NotSayable('there is no such time');
  return { at: isoInstant(instant) };
}

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
