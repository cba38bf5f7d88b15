import { z } from 'zod';
import { DAY_MS } from '../../core/time/utc-day.ts';
import { type Instant, isoInstant } from '../../core/instant.ts';
import { type LoadCount, type LoadPeriod, LoadTooLarge, createLoadCount } from '../../core/time/fire-load.ts';
import type { CalendarHistory } from '../../core/exclusions/calendar-history.ts';
import { MAX_JITTER_MS } from '../../core/time/expected-occurrences.ts';
import { type Timing, calendarIdsOf } from '../../core/schedules/schedule.ts';
import { inSlices } from '../../runtime/loop/slices.ts';
import { databaseNow } from '../../postgres/sql/database-now.ts';
import type { Database } from '../../postgres/database.ts';
import { readCalendars } from '../../store/calendars/calendar-histories.ts';
import { listTimings } from '../../store/reports/enabled-timings.ts';
import { skipsOf } from '../../store/schedules/skips.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { emptyPeriod } from '../http/period.ts';
import { TAGS } from '../http/plugins/openapi.ts';
import { Problem, invalid } from '../http/problem.ts';
import { json, problems } from '../http/response-schemas.ts';
import { queryInstant, queryInteger } from '../http/common-schemas.ts';
import { load } from './schemas.ts';

const MAX_BUCKETS = 2000;

const loadQuery = z.strictObject({
  from: queryInstant.optional().meta({
    description: 'Inclusive; now where it is not given.',
    example: '2026-11-20T00:00:00Z',
  }),
  to: queryInstant.optional().meta({
    description: `Exclusive; 24 h after \`from\`, or ${MAX_BUCKETS} buckets, where it is not given.`,
    example: '2026-11-21T00:00:00Z',
  }),
  bucketSeconds: queryInteger(1, 86_400, 60),
});

export function addLoadRoute(api: Api, { database }: ApiDeps): void {
  const inTurn = oneAtATime();
  api.get(
    '/load',
    {
      config: { role: 'viewer', alsoCheck: emptyPeriod },
      schema: {
        operationId: 'getLoad',
        summary: 'How many fires of all enabled schedules are due when, as they are defined now',
        tags: [TAGS.times],
        querystring: loadQuery,
        response: { 200: json('The load', load), ...problems(400, 422) },
      },
    },
    async ({ query: { from, to, bucketSeconds }, socket }) => {
      const begin = from ?? (await database.run(databaseNow));
      const period = periodOf(begin, to, bucketSeconds * 1000);
      const count = await inTurn(async () => {
        const isGone = () => socket.destroyed;
        const counted = await countLoad(database, period, isGone);
        if (counted.count === null) throw await tooMuch(database, period, counted, isGone);
        return counted.count;
      });
      return answerLoad(count);
    },
  );
}

/** @throws Problem 400 */
function periodOf(from: Instant, end: Instant | undefined, bucketMs: number): LoadPeriod {
  const first = Math.floor(from / bucketMs);
  const to = end ?? Math.min(from + DAY_MS, (first + MAX_BUCKETS) * bucketMs);
  if (to <= from) throw invalid([{ path: 'to', message: 'must be later than from, which is now' }]);
  const buckets = Math.ceil(to / bucketMs) - first;
  if (buckets > MAX_BUCKETS) {
    const message = `makes ${buckets} buckets of this period, which are more than ${MAX_BUCKETS}`;
    throw invalid([{ path: 'bucketSeconds', message }]);
  }
  return { from, to, bucketMs };
}

const PAGE = 5_000;
const FIRST_UID = '00000000-0000-0000-0000-000000000000';

interface Counted {
  /** Null: there are too many to count. */
  count: LoadCount | null;
  /** All of about the same size. */
  slices: number;
}

async function countLoad(database: Database, period: LoadPeriod, isGone: () => boolean): Promise<Counted> {
  const calendars: Histories = new Map();
  const count = createLoadCount({ ...period, calendars });
  const spent = { slices: 0 };
  try {
    const all = allTimings(database, { since: period.from, calendars }, isGone);
    for await (const { identity, timing, skips } of all) {
      await inSlices(tallied(count.add(timing, identity), spent));
      if (skips) await inSlices(tallied(count.leaveOut(timing, identity, skips.keys()), spent));
    }
    await inSlices(tallied(count.finish(), spent));
    return { count, ...spent };
  } catch (error) {
    if (error instanceof LoadTooLarge) return { count: null, ...spent };
    throw error;
  }
}

function* tallied(steps: Iterable<void>, spent: { slices: number }): Generator<void, void, void> {
  for (const step of steps) {
    spent.slices += 1;
    yield step;
  }
}

type Histories = Map<string, CalendarHistory>;

/** `calendars` has the histories of a timing's calendars by the time the timing is handed over. */
async function* allTimings(
  database: Database,
  { since, calendars }: { since: Instant; calendars: Histories },
  isGone: () => boolean,
) {
  for (let after: string | null = FIRST_UID; after !== null && !isGone();) {
    const first: string = after;
    const page = await database.run((db) => listTimings(db, { after: first, limit: PAGE }));
    const uids = page.flatMap(({ uid, hasSkips }) => (hasSkips ? [uid] : []));
    const skips = uids.length === 0 ? null : await database.run((db) => skipsOf(db, uids));
    await readInto(calendars, database, { timings: page.flatMap(({ timing }) => timing ?? []), since });
    for (const { uid, identity, timing } of page)
      if (timing) yield { identity, timing, skips: skips?.get(uid) };
    after = page.length < PAGE ? null : (page.at(-1)?.uid ?? null);
  }
}

async function readInto(
  calendars: Histories,
  database: Database,
  { timings, since }: { timings: readonly Timing[]; since: Instant },
): Promise<void> {
  const ids = new Set(timings.flatMap(calendarIdsOf).filter((id) => !calendars.has(id)));
  if (ids.size === 0) return;
  const { histories } = await database.run((db) => readCalendars(db, [...ids], since - MAX_JITTER_MS));
  for (const [id, history] of histories) calendars.set(id, history);
}

/** The cost of the first part of the period shows how much of it can be counted. */
async function tooMuch(
  database: Database,
  period: LoadPeriod,
  { slices: maxSlices }: Counted,
  isGone: () => boolean,
): Promise<Problem> {
  const { from, to, bucketMs } = period;
  const problem = (hint: string) =>
    invalid(
      [{ path: 'to', message: `makes a period with too much to count: ask for a shorter one${hint}` }],
      422,
    );
  for (let sample = (to - from) / SAMPLES; sample >= 1000 && !isGone(); sample /= SAMPLES) {
    const { count, slices } = await countLoad(database, { from, to: from + sample, bucketMs }, isGone);
    if (count === null) continue;
    // Half of it, since hours differ.
    const fitting = Math.min(0.5 * sample * (maxSlices / Math.max(slices, 1)), (to - from) / 2);
    return problem(`; a period to ${isoInstant(from + Math.ceil(fitting / 1000) * 1000)} would fit`);
  }
  return problem('');
}

const SAMPLES = 64;

function answerLoad(count: LoadCount) {
  const buckets = count.buckets();
  const busiest = buckets.reduce<(typeof buckets)[number] | null>(
    (most, bucket) => (most !== null && most.fires >= bucket.fires ? most : bucket),
    null,
  );
  return {
    items: buckets.map(answerBucket),
    busiest: busiest && answerBucket(busiest),
    schedules: count.schedules(),
  };
}

function answerBucket({ at, fires }: { at: Instant; fires: number }) {
  return { at: isoInstant(at), fires };
}

/** This is work for this process, not only for the database: requests take turns, in the order in which they came. */
function oneAtATime(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const mine = last.then(work);
    last = mine.catch(() => undefined);
    return mine;
  };
}
