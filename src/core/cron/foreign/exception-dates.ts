import { DateTime } from 'luxon';
import { isZone } from '../../zones/zone.ts';
import { type ForeignFields, NotSayable, instantIn } from './foreign-fields.ts';

/**
 * The days that the EXDATE lines of a rule leave out. A moment leaves out its whole day where that has no other fire.
 * @throws NotSayable
 */
export function exceptionDates(
  lines: readonly string[],
  fields: ForeignFields,
  zone: string | null,
): Pick<ForeignFields, 'exclude'> {
  if (lines.length === 0) return {};
  if (fields.pick !== undefined)
    throw new NotSayable(
      'EXDATE beside BYSETPOS: another day would be picked in place of the one that is left out',
    );
  const dates = lines.flatMap((line) => {
    const [, named, values = ''] = LINE.exec(line) ?? [];
    if (values === '') throw new NotSayable(`${line.slice(0, 60)} is no EXDATE with dates`);
    if (named !== undefined && !isZone(named))
      throw new NotSayable(`${named} is not the IANA name of a zone`);
    return values.split(',').map((value) => dateOf(value, { fields, zone, written: named ?? zone }));
  });
  return { exclude: { dates: [...new Set(dates)].sort() } };
}

const LINE = /^EXDATE(?:;(?:VALUE=DATE(?:-TIME)?|TZID=([^:;]{1,64})))*:([\dTZ,]+)$/i;
const VALUE = /^(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)(\d\d)(Z?))?$/i;

interface Place {
  fields: ForeignFields;
  /** Of the schedule, and of the moment as it is written. */
  zone: string | null;
  written: string | null;
}

function dateOf(value: string, { fields, zone, written }: Place): string {
  const [found, year, month, day, hour, minute, second, utc] = VALUE.exec(value) ?? [];
  if (found === undefined) throw new NotSayable(`EXDATE has “${value.slice(0, 30)}”, which is no date`);
  const date = `${year}-${month}-${day}`;
  if (hour === undefined) return date;
  const instant = instantIn(`${date}T${hour}:${minute}:${second}`, utc === '' ? written : 'UTC');
  const there = DateTime.fromISO(instant, { zone: zone ?? 'UTC' });
  const time = onlyTime(fields);
  if (time === null)
    throw new NotSayable(
      `EXDATE ${value} leaves out one of several fires of its day: exclude knows whole days`,
    );
  if (there.toFormat('H:m:s') !== time)
    throw new NotSayable(`EXDATE ${value} is no moment at which it fires`);
  return there.toFormat('yyyy-MM-dd');
}

/** The one time of day at which it fires; null: there are several. */
function onlyTime({ cron }: ForeignFields): string | null {
  if (typeof cron !== 'string') return null;
  const found = /^(?:(\d+) (?=\S+ \S+ \S+ \S+ \S+$))?(\d+) (\d+) \S+ \S+ \S+$/.exec(cron);
  const [, second = '0', minute, hour] = found ?? [];
  return minute === undefined ? null : `${hour}:${minute}:${second}`;
}
