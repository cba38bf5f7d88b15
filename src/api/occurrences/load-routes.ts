import { z } from 'zod';
import { type Instant, DAY_MS, isoInstant } from '../../core/instant.ts';
import type { Scope } from '../../core/access/scope.ts';
import type { LoadPeriod } from '../../core/time/fire-load.ts';
import { databaseNow } from '../../postgres/sql/rows.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { encodeCursor, foreignCursor, loadCursor } from '../http/pages.ts';
import { emptyPeriod, LATER_THAN_FROM } from '../http/request-checks.ts';
import { invalid } from '../http/problem.ts';
import { addRoute, json, TAGS } from '../http/routes.ts';
import { queryInteger } from '../http/filter-schemas.ts';
import { answeredInstant, queryInstant } from '../http/common-schemas.ts';
import { type CountedLoad, countAll, countPage } from './count-load.ts';

const MAX_BUCKETS = 2000;
const MAX_PAGE = 10_000;

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
  top: queryInteger(1, 100, undefined).describe(
    'Adds `firing`: so many of the schedules that fire in the period, those with the most fires first.',
  ),
  maxSchedules: queryInteger(1, MAX_PAGE, undefined).describe(
    'Counts only so many schedules, or fewer if these take long, and adds `nextCursor`. The sums over all pages are the ' +
      'whole. Use it to see a first part at once where schedules are very many.',
  ),
  cursor: loadCursor.optional(),
});

const bucket = z.object({ at: answeredInstant, fires: z.int() });

const load = z
  .object({
    items: z.array(bucket).describe('Buckets with fires, by the moment they begin; jitter included.'),
    busiest: bucket.nullable(),
    schedules: z.int().describe('How many enabled schedules with fire times were counted.'),
    firing: z
      .array(z.object({ id: z.string(), fires: z.int() }))
      .optional()
      .describe('With `top`: schedules that fire in the period, those with the most fires first.'),
    nextCursor: z
      .string()
      .nullable()
      .optional()
      .describe('With `maxSchedules`: where to go on; null: all schedules were counted.'),
  })
  .describe(
    'What lies before now is counted as if the schedules had always been as they are: not what fired, which `/stats` and ' +
      '`/schedules/{id}/occurrences` tell.',
  );

export function addLoadRoute(api: Api, { database }: ApiDeps): void {
  addRoute(api, {
    route: 'GET /load',
    operationId: 'getLoad',
    config: { role: 'viewer', scope: 'itself', pace: 'slow', alsoCheck: emptyPeriod },
    summary: 'How many fires of all enabled schedules are due when, as they are defined now',
    tags: [TAGS.times],
    querystring: loadQuery,
    answers: { 200: json('The load', load) },
    refusals: [422],
    handler: async ({ query: { from, to, bucketSeconds, top = 0, maxSchedules, cursor }, caller, socket }) => {
      const { scope } = caller;
      const begin = from ?? (await database.run(databaseNow));
      const period = periodOf(begin, to, bucketSeconds * 1000);
      const asked = { database, scope, period, top, isGone: () => socket.destroyed };
      const isPage = maxSchedules !== undefined || cursor !== undefined;
      const page = { after: placeIn(cursor, scope), most: maxSchedules ?? MAX_PAGE };
      const counted = await (isPage ? countPage(asked, page) : countAll(asked));
      const { firing, next } = counted;
      return {
        ...answerLoad(counted),
        ...(top > 0 && { firing }),
        ...(isPage && { nextCursor: next === null ? null : cursorOf(next, scope) }),
      };
    },
  });
}

type LoadCursor = z.output<typeof loadCursor>;

/** @throws Problem 400: it is a cursor of a caller with a scope, and this one has none, or the other way round */
function placeIn(cursor: LoadCursor | undefined, scope: Scope): string | null {
  if (cursor === undefined) return null;
  const { after, afterId } = cursor;
  const place = scope === null ? after : afterId;
  if (place === undefined) throw foreignCursor();
  return place;
}

function cursorOf(next: string, scope: Scope): string {
  return encodeCursor(scope === null ? { after: next } : { afterId: next });
}

/** @throws Problem 400 */
function periodOf(from: Instant, end: Instant | undefined, bucketMs: number): LoadPeriod {
  const first = Math.floor(from / bucketMs);
  const to = end ?? Math.min(from + DAY_MS, (first + MAX_BUCKETS) * bucketMs);
  if (to <= from) throw invalid([{ path: 'to', message: `${LATER_THAN_FROM}, which is now` }]);
  const buckets = Math.ceil(to / bucketMs) - first;
  if (buckets > MAX_BUCKETS) {
    const message = `divides the period into ${buckets} buckets, of at most ${MAX_BUCKETS}`;
    throw invalid([{ path: 'bucketSeconds', message }]);
  }
  return { from, to, bucketMs };
}

function answerLoad({ buckets, schedules }: CountedLoad) {
  const busiest = buckets.reduce<(typeof buckets)[number] | null>(
    (most, bucket) => (most !== null && most.fires >= bucket.fires ? most : bucket),
    null,
  );
  return { items: buckets.map(answerBucket), busiest: busiest && answerBucket(busiest), schedules };
}

function answerBucket({ at, fires }: { at: Instant; fires: number }) {
  return { at: isoInstant(at), fires };
}
