import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { isStorableText, pointer } from './json-body.ts';
import { type Fault, invalid } from './problem.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What takes too long to be found out in one go; awaited before all parts are checked at once. */
    checkAhead?: (request: FastifyRequest) => Promise<void>;
    /** What no schema of one part can say; sees the request as it was sent. */
    alsoCheck?: (request: FastifyRequest) => Fault[];
  }
}

/**
 * Checks params, query, headers and body together, so that one answer names every fault, and puts what the schemas make
 * of them into the request. The framework's own validation stops at the first part that fails.
 * @throws Problem 400
 */
export function validateRequest(request: FastifyRequest): void {
  const { schema, config } = request.routeOptions;
  const faults: Fault[] = [...(request.json?.faults ?? []), ...(config.alsoCheck?.(request) ?? [])];
  const check = (part: unknown, value: unknown, pathOf: PathOf): unknown => {
    if (!(part instanceof z.ZodType)) return value;
    const checked = checkValue(part, value, pathOf);
    if ('faults' in checked) faults.push(...checked.faults);
    return 'faults' in checked ? value : checked.value;
  };
  faults.push(...badText(request.query), ...badText(request.params));
  const params = check(schema?.params, request.params, parameter);
  const query = check(schema?.querystring ?? noParameters, request.query, parameter);
  const headers = check(schema?.headers, headersFor(schema?.headers, request), parameter);
  const body = check(schema?.body, request.body, pointer);
  if (faults.length > 0) throw invalid(oncePerPath(faults));
  request.params = params;
  request.query = query;
  request.headers = inLowerCase(headers);
  request.body = body;
}

/** What a schema makes of a value, or all that is wrong with it. */
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

type PathOf = (path: readonly PropertyKey[]) => string;

const parameter: PathOf = ([name = '']) => String(name);

function faultsOf(issue: z.core.$ZodIssue, pathOf: PathOf): Fault[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({
      path: pathOf([...issue.path, key]),
      message: pathOf === parameter ? 'is not a parameter of this call' : 'is not a field',
    }));
  }
  if (issue.code === 'invalid_key') {
    return issue.issues.map(({ message }) => ({
      path: pathOf(issue.path),
      message: `has a name that ${message}`,
    }));
  }
  return [{ path: pathOf(issue.path), message: issue.message }];
}

/** Said of the field that the fault's path names. */
function messageFor(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.input === undefined) return 'is required';
  switch (issue.code) {
    case 'invalid_type':
      if (Array.isArray(issue.input) && issue.expected === 'string') return 'must be one string';
      return `must be ${/^[aeiou]/.test(issue.expected) ? 'an' : 'a'} ${issue.expected === 'int' ? 'whole number' : issue.expected}`;
    case 'invalid_value':
      return `must be ${issue.values.map((value) => JSON.stringify(value)).join(' or ')}`;
    case 'too_big':
      return `must be at most ${issue.maximum}${unitOf(issue.origin)}`;
    case 'too_small':
      return `must be at least ${issue.minimum}${unitOf(issue.origin)}`;
    case 'invalid_format':
      return `must match ${issue.pattern ?? issue.format}`;
    case 'not_multiple_of':
    case 'unrecognized_keys':
    case 'invalid_union':
    case 'invalid_key':
    case 'invalid_element':
    case 'custom':
      return undefined;
  }
}

function unitOf(origin: string): string {
  if (origin === 'string') return ' characters';
  return origin === 'array' ? ' items' : '';
}

/** Each as often as it was sent: a header that stands there twice is a list, and refused where one is meant. */
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

function oncePerPath(faults: Fault[]): Fault[] {
  const paths = new Set<string>();
  return faults.filter(({ path }) => !paths.has(path) && paths.add(path));
}
