import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { instant, refused, queryInstant } from './common-schemas.ts';
import { isObject } from './json/json-body.ts';
import { type Fault, noSuch, Problem } from './problem.ts';

/** For `alsoCheck`, as all of these: an empty period is a mistake of the caller. */
export function emptyPeriod({ query }: FastifyRequest): Fault[] {
  return emptyPeriodOf(query, queryInstant, 'to');
}

export function emptyPeriodInBody({ body }: FastifyRequest): Fault[] {
  return emptyPeriodOf(body, instant, '/to');
}

export const LATER_THAN_FROM = 'must be later than from';

function emptyPeriodOf(period: unknown, schema: z.ZodType<number>, path: string): Fault[] {
  if (!isObject(period)) return [];
  const [first, end] = [schema.safeParse(period['from']), schema.safeParse(period['to'])];
  if (!first.success || !end.success || first.data < end.data) return [];
  return [{ path, message: LATER_THAN_FROM }];
}

export function idOfAnother({ params, body }: FastifyRequest): Fault[] {
  const { id } = params as { id: string };
  if (!isObject(body) || body['id'] === undefined || body['id'] === id) return [];
  return [{ path: '/id', message: 'must be the id in the path' }];
}

export function unexpectedBody({ body }: FastifyRequest): Fault[] {
  return body === undefined ? [] : [{ path: '', message: 'must be absent: this call takes no body' }];
}

/** The items of a batch as they were sent; none for any other body. */
export function itemsSent(body: unknown): readonly unknown[] {
  const items = isObject(body) ? body['items'] : undefined;
  return Array.isArray(items) ? items : [];
}

/** Items that have the same name as an earlier item. */
export function repeatedInItems(items: readonly unknown[], name: string): Fault[] {
  const first = new Map<unknown, number>();
  return items.flatMap((item, index) => {
    const value = isObject(item) ? item[name] : undefined;
    if (value === undefined || value === null) return [];
    const earlier = first.get(value);
    if (earlier === undefined) first.set(value, index);
    return earlier === undefined
      ? []
      : [{ path: `/items/${index}/${name}`, message: `repeats the ${name} of item ${earlier}` }];
  });
}

/** `*`, or the entity tags that a header lists. */
type Tags = '*' | readonly string[];

const tags = z
  .preprocess(
    (value) => (Array.isArray(value) ? value.join(', ') : value),
    z.string().transform((value, context): Tags => {
      return parseTags(value) ?? refused(context, 'must be * or a list of entity tags, such as "3"');
    }),
  )
  .optional();

/** The part of HTTP's syntax that our own tags need. */
const TAGS = { type: 'string', pattern: '^(\\*|"[0-9]+"(, "[0-9]+")*)$', example: '"3"' };
const IF_MATCH = { ...TAGS, description: 'Only if the version is still this `ETag`, else 412.' };
const IF_NONE_MATCH = { ...TAGS, example: '*', description: '`*`: create only, 412 where it exists.' };

export const ifMatchHeader = z.object({ 'If-Match': tags.meta(IF_MATCH) });
export const preconditionHeaders = z.object({
  'If-Match': tags.meta(IF_MATCH),
  'If-None-Match': tags.meta(IF_NONE_MATCH),
});

interface Versioned {
  version: number;
}

export function etagOf({ version }: Versioned): string {
  return `"${version}"`;
}

/** The headers as validation hands them over: their names in lower case. */
interface Preconditions {
  'if-match'?: Tags | undefined;
  'if-none-match'?: Tags | undefined;
}

/**
 * Checks the conditions of RFC 9110 §13.1. `what` names what the call is about; `current` is null where it does not exist.
 * @throws Problem 412; 404 if If-Match names a version of something that does not exist
 */
export function checkPreconditions(
  what: string,
  { 'if-match': match, 'if-none-match': noneMatch }: Preconditions,
  current: Versioned | null,
): void {
  const etag = current && etagOf(current);
  if (match !== undefined && etag === null) throw noSuch(what);
  if (match !== undefined && !matches(match, etag)) {
    const isWeakened = etag !== null && matches(match, `W/${etag}`);
    throw new Problem(412, isWeakened ? weakened(etag) : `${what} has changed: its ETag is ${etag ?? 'gone'}`);
  }
  // Only here, a weak tag counts like a strong one.
  if (noneMatch !== undefined && etag !== null && (matches(noneMatch, etag) || matches(noneMatch, `W/${etag}`))) {
    throw new Problem(412, `${what} already exists, with the ETag ${etag}`);
  }
}

/** A proxy that compresses answers makes a weak tag of a strong one (RFC 9110, 8.8.1), which If-Match never takes (13.1.1). */
function weakened(etag: string): string {
  return `If-Match takes no weak tag, and W/${etag} is one: send ${etag}. A proxy that compresses answers may have changed it`;
}

function matches(tagged: Tags, etag: string | null): boolean {
  return etag !== null && (tagged === '*' || tagged.includes(etag));
}

const TAG = /^(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"$/;

function parseTags(value: string): Tags | null {
  if (value.trim() === '*') return '*';
  // By the standard a tag may contain a comma; ours never do, so such a tag matches nothing.
  const listed = value.split(',').map((tag) => tag.trim());
  return listed.every((tag) => TAG.test(tag)) ? listed : null;
}
