import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { createPace } from '../../runtime/loop/slices.ts';
import { pointer } from '../../core/json-text.ts';
import { isObject, isStorableText } from './json/json-body.ts';
import { MAX_ITEMS } from './json/json-parts.ts';
import { type Fault, MAX_FAULTS, invalid, nothingHere } from './problem.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * The body is `{items}`, and this is the schema of one item: items are checked one by one, and other work runs in
     * between.
     */
    itemSchema?: z.ZodType;
    /** The fields beside the items; without it, none are allowed. */
    besideItems?: z.ZodRawShape;
    /** A check that no schema of one part can express; it sees the request as it was sent. */
    alsoCheck?: (request: FastifyRequest) => Fault[] | Promise<Fault[]>;
  }
}

/**
 * Checks params, query, headers and body together, so that one answer names every fault, and puts what the schemas make
 * of them into the request. The framework's own validation stops at the first part that fails.
 * @throws Problem 400, 404
 */
export async function validateRequest(request: FastifyRequest): Promise<void> {
  // There is no route, so there are no schemas.
  if (request.is404) return;
  const { schema, config } = request.routeOptions;
  // For the router, `/schedules/` has an empty id.
  if (Object.values(request.params as object).includes('')) throw nothingHere();
  const faults: Fault[] = (await config.alsoCheck?.(request)) ?? [];
  const check = (part: unknown, value: unknown, pathOf: PathOf): unknown => {
    if (!(part instanceof z.ZodType)) return value;
    const checked = checkValue(part, value, pathOf);
    if ('faults' in checked) append(faults, checked.faults);
    return 'faults' in checked ? value : checked.value;
  };
  append(faults, badText(request.query));
  append(faults, badText(request.params));
  const params = check(schema?.params, request.params, parameter);
  const query = check(schema?.querystring ?? noParameters, request.query, parameter);
  const headers = check(schema?.headers, headersFor(schema?.headers, request), parameter);
  const { itemSchema, besideItems = {} } = config;
  const body = check(itemSchema ? unreadItems.extend(besideItems) : schema?.body, request.body, pointer);
  if (itemSchema) append(faults, await checkItems(itemSchema, body));
  const all = [...(request.json?.faults ?? []), ...oncePerPath(faults, request.json?.faults)];
  if (all.length > 0) throw invalid(all);
  request.params = params;
  request.query = query;
  request.headers = inLowerCase(headers);
  request.body = body;
}

/** The value that a schema makes, or all faults. */
export function checkValue<T>(
  schema: z.ZodType<T>,
  value: unknown,
  pathOf: PathOf = pointer,
): { value: T } | { faults: Fault[] } {
  const result = schema.safeParse(value, { error: messageFor });
  if (result.success) return { value: result.data };
  return { faults: result.error.issues.flatMap((issue) => faultsOf(issue, pathOf)) };
}

const noParameters = z.strictObject({});

const unreadItems = z.strictObject({ items: z.array(z.unknown()).max(MAX_ITEMS) });

/** Puts the schema's value of each item in its place. Stops looking for faults when an answer could name no more. */
async function checkItems(schema: z.ZodType, body: unknown): Promise<Fault[]> {
  const items = isObject(body) ? body['items'] : undefined;
  const faults: Fault[] = [];
  if (!Array.isArray(items)) return faults;
  const pace = createPace();
  for (const [index, item] of items.entries()) {
    if (faults.length > MAX_FAULTS) break;
    await pace();
    const checked = checkValue(schema, item, (path) => pointer(['items', index, ...path]));
    if ('faults' in checked) append(faults, checked.faults);
    else items[index] = checked.value;
  }
  return faults;
}

type PathOf = (path: readonly PropertyKey[]) => string;

/** Of a parameter: its name. */
export const parameter: PathOf = ([name = '']) => String(name);

function faultsOf(issue: z.core.$ZodIssue, pathOf: PathOf): Fault[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({
      path: pathOf([...issue.path, key]),
      message: pathOf === parameter ? 'is not a parameter of this call' : issue.message,
    }));
  }
  if (issue.code === 'invalid_key') {
    return issue.issues.map(({ message }) => ({
      path: pathOf(issue.path),
      message: `has a name that ${message}`,
    }));
  }
  // The value may be a string, or a list or an object: reports the faults inside of that.
  const inner = issue.code === 'invalid_union' ? issue.errors.filter(isOfThisType) : [];
  const [only] = inner;
  if (only && inner.length === 1)
    return only.flatMap((one) => faultsOf(one, (path) => pathOf([...issue.path, ...path])));
  return [{ path: pathOf(issue.path), message: issue.message }];
}

function isOfThisType(issues: readonly z.core.$ZodIssue[]): boolean {
  const isOther = ({ code, path }: z.core.$ZodIssue) =>
    (code === 'invalid_type' || code === 'invalid_value') && path.length === 0;
  return issues.length > 0 && !issues.some(isOther);
}

/** The message about the field that the fault's path names. */
function messageFor(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.input === undefined) return 'is required';
  switch (issue.code) {
    case 'invalid_type':
      if (Array.isArray(issue.input) && issue.expected === 'string') return 'must be one string';
      return `must be ${withArticle(NOUNS[issue.expected] ?? issue.expected)}`;
    case 'invalid_value':
      return `must be ${issue.values.map((value) => JSON.stringify(value)).join(' or ')}`;
    case 'too_big':
      return `must be at most ${issue.maximum}${unitOf(issue.origin, issue.maximum)}`;
    case 'too_small':
      return `must be at least ${issue.minimum}${unitOf(issue.origin, issue.minimum)}`;
    case 'invalid_format':
      return `must match ${issue.pattern ?? issue.format}`;
    case 'unrecognized_keys':
      return 'is not a field';
    case 'not_multiple_of':
    case 'invalid_union':
    case 'invalid_key':
    case 'invalid_element':
    case 'custom':
      return undefined;
  }
}

const NOUNS: Partial<Record<string, string>> = { int: 'whole number', record: 'object' };

function withArticle(noun: string): string {
  return `${/^[aeiou]/.test(noun) ? 'an' : 'a'} ${noun}`;
}

function unitOf(origin: string, count: number | bigint): string {
  const unit = origin === 'string' ? ' character' : origin === 'array' ? ' item' : '';
  return unit === '' || Number(count) === 1 ? unit : `${unit}s`;
}

/** A header that was sent twice becomes a list, and is refused if only one value is allowed. */
function headersFor(schema: unknown, { raw: { rawHeaders } }: FastifyRequest): Record<string, unknown> {
  if (!(schema instanceof z.ZodObject)) return {};
  return Object.fromEntries(
    Object.keys(schema.shape).flatMap((name) => {
      const sent = (index: number) => rawHeaders[index - 1]?.toLowerCase() === name.toLowerCase();
      const values = rawHeaders.filter((_value, index) => index % 2 === 1 && sent(index));
      return values.length === 0 ? [] : [[name, values.length === 1 ? values[0] : values]];
    }),
  );
}

function inLowerCase(headers: unknown): FastifyRequest['headers'] {
  const entries = Object.entries(headers as FastifyRequest['headers']);
  return Object.fromEntries(entries.map(([name, value]) => [name.toLowerCase(), value]));
}

function badText(parameters: unknown): Fault[] {
  return Object.entries(parameters as Record<string, string | string[]>)
    .filter(([name, value]) => ![name, value].flat().every(isStorableText))
    .map(([name]) => ({ path: name, message: 'is not percent-encoded UTF-8 text without NUL' }));
}

/** push(...more) takes no more elements than the stack holds. */
function append(faults: Fault[], more: readonly Fault[]): void {
  for (const fault of more) faults.push(fault);
}

/** Keeps one fault for each place: if the text itself is wrong, the schema's fault adds nothing. */
function oncePerPath(faults: readonly Fault[], said: readonly Fault[] = []): Fault[] {
  const paths = new Set(said.map(({ path }) => path));
  return faults.filter(({ path }) => !paths.has(path) && paths.add(path));
}

/** Stands for bytes that are not percent-encoded UTF-8: no text can contain it, so the validation names the parameter. */
const UNREADABLE = '\ud800';

/**
 * Reads a query as forms are encoded: `+` is a space; a name that occurs more than once gets an array. Never throws:
 * the router calls it where nothing could catch the error.
 */
export function parseQueryString(text: string): Record<string, string | string[]> {
  const parameters = Object.create(null) as Record<string, string | string[]>;
  for (const pair of text.split('&')) {
    if (pair === '') continue;
    const equals = pair.indexOf('=');
    const name = decode(equals === -1 ? pair : pair.slice(0, equals));
    const value = equals === -1 ? '' : decode(pair.slice(equals + 1));
    const given = parameters[name];
    if (given === undefined) parameters[name] = value;
    else if (Array.isArray(given)) given.push(value);
    else parameters[name] = [given, value];
  }
  return parameters;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return UNREADABLE;
  }
}
