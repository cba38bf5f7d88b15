import { z } from 'zod';
import { EARLIEST, LATEST } from '../../core/instant.ts';
import { type PageRoom, isFull, PAGE_BYTES } from '../../postgres/sql/lists.ts';
import { RawJson, stringify } from './json/raw-json.ts';
import { type Problem, invalid } from './problem.ts';
import { refused, scheduleIdText, whole } from './common-schemas.ts';
import { queryInteger } from './filter-schemas.ts';

export const limitQuery = queryInteger(1, 500, 50);

/** The position at which the next page begins, and of which list, if there are several of a kind; opaque to clients. */
export const scheduleCursor = cursorOf(z.strictObject({ after: scheduleIdText }));
export const runCursor = cursorOf(z.strictObject({ of: ofSchedule(), scheduledFor: instantNumber(), id: z.uuid() }));
export const versionCursor = cursorOf(
  z.strictObject({
    of: ofSchedule(),
    at: instantNumber(),
    uid: z.guid(),
    version: whole(1, 2 ** 31 - 1),
  }),
);
export const occurrenceCursor = cursorOf(z.strictObject({ of: ofSchedule(), fireAt: instantNumber(), uid: z.guid() }));

/** The uid of a schedule; for a caller with a scope an id, by which its schedules are read. */
export const loadCursor = cursorOf(z.strictObject({ after: z.guid().optional(), afterId: scheduleIdText.optional() }));

export const alertCursor = cursorOf(z.strictObject({ after: z.uuid() }));

export const auditCursor = cursorOf(z.strictObject({ at: instantNumber(), id: z.guid() }));

/** A cursor of this schedule's list, or (null) of the list over all schedules. @throws Problem 400 */
export function cursorIn<Cursor extends { of: string | null }>(
  cursor: Cursor | undefined,
  scheduleId: string | null,
): Cursor | undefined {
  if (cursor !== undefined && cursor.of !== scheduleId) throw foreignCursor();
  return cursor;
}

export function foreignCursor(): Problem {
  return invalid([{ path: 'cursor', message: FOREIGN }]);
}

interface Read<Row> {
  /** One more than the limit, where there are so many: then there is a next page. */
  rows: readonly Row[];
  limit: number;
  /** Where they may have ended for their bytes. */
  room?: PageRoom;
}

/** Ends after the row with which it has PAGE_BYTES, if it does not end before. */
export function pageOf<Row, Answer>(
  { rows, limit, room }: Read<Row>,
  answer: (row: Row) => Answer,
  cursor: (last: Row) => object,
): { items: Answer[]; nextCursor: string | null } {
  const written: RawJson[] = [];
  let bytes = 0;
  for (const row of rows.slice(0, limit)) {
    if (bytes >= PAGE_BYTES) break;
    const item = new RawJson(stringify(answer(row)));
    bytes += Buffer.byteLength(item.text);
    written.push(item);
  }
  const last = rows[written.length - 1];
  const more = last !== undefined && (rows.length > written.length || isFull(room));
  // They are answers still, written only once.
  const items = written as unknown as Answer[];
  return { items, nextCursor: more ? encodeCursor(cursor(last)) : null };
}

export function encodeCursor(content: object): string {
  return Buffer.from(JSON.stringify(content)).toString('base64url');
}

export function pageSchema(item: z.ZodType) {
  return z.object({
    items: z.array(item),
    nextCursor: z.string().nullable().meta({
      description:
        'Null: this is the last page. One that ends before `limit` may have a next one: it ends at about 4 MiB.',
    }),
  });
}

const FOREIGN = 'is not a nextCursor of this list';

function ofSchedule() {
  return scheduleIdText.nullable();
}

function instantNumber() {
  return z.int().min(EARLIEST).max(LATEST);
}

function cursorOf<T>(content: z.ZodType<T>) {
  return z
    .string()
    .transform((value, context): T => {
      const parsed = content.safeParse(decode(value));
      return parsed.success ? parsed.data : refused(context, FOREIGN);
    })
    .meta({
      type: 'string',
      pattern: '^[A-Za-z0-9_-]+$',
      description: 'The `nextCursor` of the page before, as it is.',
    });
}

function decode(value: string): unknown {
  try {
    return JSON.parse(Buffer.from(value, 'base64url').toString());
  } catch {
    return undefined;
  }
}
