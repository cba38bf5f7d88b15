import { type ForeignFields, NotSayable } from '../cron/foreign/foreign-fields.ts';
import { type Instant, isoInstant } from '../instant.ts';
import { DEFAULT_TIMING } from '../timing/timing.ts';
import { fireTimes } from './fire-times.ts';

/** It is walked fire by fire. */
const MOST = 10_000;

/** The same fields with an end in place of a number of fires. Days that are left out count, as in iCalendar. @throws NotSayable */
export function withCountedEnd({ count, ...fields }: ForeignFields): ForeignFields {
  if (count === undefined) return fields;
  if (fields.startAt === undefined) throw new NotSayable('COUNT counts from DTSTART: put that line before the rule');
  if (count > MOST) throw new NotSayable(`COUNT is ${count}, and an end is computed for ${MOST} at most`);
  const last = fireOf(count, fields, Date.parse(fields.startAt));
  return last === null ? fields : { ...fields, endAt: isoInstant(last + 1000) };
}

/** Null: it has fewer. */
function fireOf(count: number, fields: ForeignFields, startAt: Instant): Instant | null {
  const { cron = null, everySeconds = null, timezone = null, every = null, pick = null } = fields;
  const kind = { cron, everySeconds, at: null, after: null };
  const times = fireTimes(
    { ...DEFAULT_TIMING, ...kind, timezone, every, pick, startAt },
    { id: 'x', createdAt: startAt },
  );
  let fire = times.next(startAt - 1);
  if (fire !== startAt)
    throw new NotSayable('DTSTART is no fire of its rule, and whether it counts, libraries read in two ways');
  for (let fires = 1; fires < count && fire !== null; fires += 1) fire = times.next(fire);
  return fire;
}
