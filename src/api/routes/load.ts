import { z } from 'zod';
import { type Instant, isoInstant } from '../../core/instant.ts';
import { type LoadCount, type LoadPeriod, LoadTooLarge, createLoadCount } from '../../core/time/load.ts';
import { inSlices } from '../../runtime/slices.ts';
import { databaseNow } from '../../store/database-now.ts';
import type { Database } from '../../store/database.ts';
import { listTimings } from '../../store/load.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { emptyPeriod } from '../period.ts';
import { TAGS } from '../plugins/openapi.ts';
import { Problem, invalid } from '../problem.ts';
import { json, problems } from '../schemas/answers.ts';
import { queryInstant, queryInteger } from '../schemas/common.ts';
import { load } from '../schemas/occurrences.ts';

const MOST_BUCKETS = 2000;
const DAY_MS = 86_400_000;

const loadQuery = z.strictObject({
  from: queryInstant.optional().meta({ description: 'Inclusive; now where it is not given.' }),
  to: queryInstant.optional().meta({
    description: `Exclusive; 24 h after \`from\`, or ${MOST_BUCKETS} buckets, where it is not given.`,
  }),
  bucketSeconds: queryInteger(1, 86_400, 60),
});

export function addLoadRoute(api: Api, { database }: ApiDeps): void {
  const inTurn = oneAtATime();
  api.get(
    '/load',
    {
      config: { alsoCheck: emptyPeriod },
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
      const counted = await inTurn(() => countLoad(database, period, () => socket.destroyed));
      return answerLoad(counted);
    },
  );
}

/** @throws Problem 400 */
function periodOf(from: Instant, end: Instant | undefined, bucketMs: number): LoadPeriod {
  const first = Math.floor(from / bucketMs);
  const to = end ?? Math.min(from + DAY_MS, (first + MOST_BUCKETS) * bucketMs);
  if (to <= from) throw invalid([{ path: 'to', message: 'must be later than from, which is now' }]);
  const buckets = Math.ceil(to / bucketMs) - first;
  if (buckets > MOST_BUCKETS) {
    const message = `makes ${buckets} buckets of this period, which are more than ${MOST_BUCKETS}`;
    throw invalid([{ path: 'bucketSeconds', message }]);
  }
  return { from, to, bucketMs };
}

const PAGE = 5_000;
const FIRST_UID = '00000000-0000-0000-0000-000000000000';

/** @throws Problem 422 */
async function countLoad(database: Database, period: LoadPeriod, isGone: () => boolean): Promise<LoadCount> {
  const count = createLoadCount(period);
  try {
    for (let after: string | null = FIRST_UID; after !== null && !isGone();) {
      after = await countPage(database, count, after);
    }
    await inSlices(count.finish());
    return count;
  } catch (error) {
    if (!(error instanceof LoadTooLarge)) throw error;
    throw new Problem(422, 'there is too much to count in this period: ask for a shorter one');
  }
}

/** Answers after which schedule the next page begins; null: this was the last one. */
async function countPage(database: Database, count: LoadCount, after: string): Promise<string | null> {
  const page = await database.run((db) => listTimings(db, { after, limit: PAGE }));
  for (const { identity, timing } of page) {
    if (timing) await inSlices(count.add(timing, identity));
  }
  return page.length < PAGE ? null : (page.at(-1)?.uid ?? null);
}

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

/** It is work for this process, not only for the database: one after the other, in the order of asking. */
function oneAtATime(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const mine = last.then(work);
    last = mine.catch(() => undefined);
    return mine;
  };
}
