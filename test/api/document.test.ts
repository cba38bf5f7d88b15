import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Contract, contractLines } from '../../scripts/support/contract-lines.ts';
import { EXAMPLES } from '../../src/api/document/examples.ts';
import { idsOf, quietApi } from './api.ts';
import { inPlainForm, sharedAnswers, withoutRepeats } from '../../src/api/document/document.ts';
import { isObject } from '../../src/api/http/json/json-body.ts';

interface Operation {
  operationId: string;
  parameters?: { name: string; in: string; required?: boolean; schema: { example?: unknown } }[];
  requestBody?: { required?: boolean; content: Record<string, Media> };
  responses: Record<string, Response | { $ref: string }>;
}

interface Response {
  description: string;
  headers?: Record<string, object>;
  content?: Record<string, Media>;
}

interface Media {
  schema: { $ref?: string; type?: string };
  examples?: Record<string, { value: unknown }>;
}

interface Document {
  paths: Record<string, Record<string, Operation>>;
  servers: { url: string }[];
  components: {
    schemas: Record<string, Schema>;
    responses: Record<string, Response>;
  };
}

interface Schema {
  $ref?: string;
  type?: string | string[];
  format?: string;
  enum?: unknown[];
  example?: unknown;
  default?: unknown;
  items?: Schema;
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
  if?: Schema;
  discriminator?: object;
}

const file = join(import.meta.dirname, '..', '..', 'openapi', 'openapi.json');
const document = JSON.parse(readFileSync(file, 'utf8')) as Document;
const operations = new Map(
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(
      ([method, operation]) => [operation.operationId, { path, method: method.toUpperCase(), operation }] as const,
    ),
  ),
);

const PROBLEM = ['application/problem+json', '#/components/schemas/Problem'];

function answersOf(responses: Operation['responses']): [status: string, type: string, named: string | undefined][] {
  return Object.entries(responses).flatMap(([status, response]) =>
    Object.entries(answer(response).content ?? {}).map(
      ([type, { schema }]) => [status, type, schema.$ref ?? schema.type] as [string, string, string | undefined],
    ),
  );
}

function answer(response: Response | { $ref: string }): Response {
  if (!('$ref' in response)) return response;
  const found = document.components.responses[response.$ref.replace('#/components/responses/', '')];
  if (found === undefined) throw new Error(`${response.$ref} leads nowhere`);
  return found;
}

describe('the document', () => {
  test('has whole examples of every body', () => {
    const without = [...operations.values()].flatMap(({ operation: { operationId, requestBody } }) =>
      Object.values(requestBody?.content ?? {})
        .filter(({ examples }) => Object.keys(examples ?? {}).length === 0)
        .map(() => operationId),
    );
    expect(without).toEqual([]);
    expect(Object.keys(EXAMPLES).filter((id) => !operations.has(id))).toEqual([]);
  });

  test('refers to schemas with names, and says which problems there are', () => {
    for (const { operation } of operations.values()) {
      const { operationId, requestBody, responses } = operation;
      for (const [type, { schema }] of Object.entries(requestBody?.content ?? {}))
        expect([operationId, type === 'text/plain' ? schema.type : schema.$ref]).toEqual([
          operationId,
          expect.any(String),
        ]);
      for (const [status, type, named] of answersOf(responses)) {
        const isProblem = Number(status) >= 400 && operationId !== 'getReadiness';
        if (isProblem) expect([operationId, status, type, named]).toEqual([operationId, status, ...PROBLEM]);
        else expect([operationId, named]).toEqual([operationId, type === 'text/plain' ? 'string' : expect.any(String)]);
      }
    }
    for (const name of (
      'Schedule ScheduleInput Run Problem Calendar CalendarInput Limit LimitInput Connection ' + 'ConnectionInput'
    ).split(' '))
      expect(Object.keys(document.components.schemas)).toContain(name);
  });

  test('tells kinds of triggers and of targets apart', () => {
    const { schemas } = document.components;
    expect(schemas['ScheduleInput']?.if?.oneOf).toHaveLength(5);
    for (const name of ['TargetInput', 'AnsweredTarget'])
      expect(schemas[name]?.discriminator).toMatchObject({
        propertyName: 'type',
        mapping: { http: expect.any(String) as string },
      });
    for (const name of ['ConnectionAuthInput', 'ConnectionAuth'])
      expect(schemas[name]?.discriminator).toMatchObject({
        mapping: { bearer: expect.any(String) as string },
      });
  });

  test('says each problem that operations answer alike once, with its headers', () => {
    const { responses } = document.components;
    expect(Object.keys(responses)).toHaveLength(14);
    expect(responses['Problem401']?.headers).toHaveProperty('WWW-Authenticate');
    for (const name of ['Problem429', 'Problem503']) expect(responses[name]?.headers).toHaveProperty('Retry-After');
    const used = new Set<string>();
    for (const { operation } of operations.values())
      for (const [status, response] of Object.entries(operation.responses)) {
        const isProblem = 'application/problem+json' in (answer(response).content ?? {});
        if (!isProblem) continue;
        expect(response).toEqual({ $ref: `#/components/responses/Problem${status}` });
        used.add(`Problem${status}`);
      }
    expect([...used].sort()).toEqual(Object.keys(responses).sort());
  });

  test('has only patterns that every tool reads', () => {
    const patterns = new Set<string>();
    JSON.stringify(document, (key, value: unknown) => {
      if (key === 'pattern' && typeof value === 'string') patterns.add(value);
      return value;
    });
    expect(patterns.size).toBeGreaterThan(5);
    for (const pattern of patterns) {
      expect(pattern).not.toMatch(/\(\?[=!<]|\\[pPkbB]|\[\[|&&/);
      expect(() => new RegExp(pattern, 'u')).not.toThrow();
    }
  });
});

test('of openapi/contract.txt one line changes for what changes once, and names what is new; none for a release', () => {
  const changedBy = (change: (contract: Contract & Document) => unknown) => {
    const changed = structuredClone(document) as Contract & Document;
    const before = contractLines(changed);
    change(changed);
    return contractLines(changed).filter((line) => !before.includes(line));
  };
  const call = '/api/v1/schedules GET listSchedules(enabled status ';
  expect(changedBy(({ paths }) => Object.assign(paths['/api/v1/schedules']?.['get'] ?? {}, { summary: '' }))).toEqual([
    expect.stringContaining(call),
  ]);
  const withMood = ({ components }: Document) =>
    Object.assign(components.schemas['Schedule']?.properties ?? {}, { mood: { type: 'string' } });
  expect(changedBy(withMood)).toEqual([expect.stringMatching(/^Schedule \{.* mood\} [0-9a-f]{8}$/)]);
  expect(changedBy(({ servers }) => servers.pop())).toEqual([expect.stringContaining('all else ')]);
  expect(changedBy(({ info }) => Object.assign(info, { version: '9.0.0' }))).toEqual([]);
});

describe('every example works as it stands:', () => {
  const api = quietApi();
  /** What the worker of the examples has claimed, and not yet reported on. */
  let runs: string[] = [];
  beforeAll(async () => {
    const run = { target: { type: 'pull', queue: 'reports' } };
    for (let count = 0; count < 4; count += 1) await api.call('POST', '/api/v1/runs', run);
  });

  const all = Object.entries(EXAMPLES).flatMap(([id, examples]) =>
    Object.entries(examples).map(([name, { value }]) => [`${id} ${name}`, id, value] as const),
  );
  test.each(all)('%s', async (_name, id, value) => {
    const { path, method, operation } = operations.get(id) ?? { path: '', method: '' };
    const key = path.includes('{key}') ? await keyOfObserved() : '';
    const at = path
      .replace('/runs/{id}', () => `/runs/${runOf(id)}`)
      .replace('{key}', key)
      .replaceAll(/\{(.+?)\}/g, (_match, parameter) => {
        const found = operation?.parameters?.find((one) => one.in === 'path' && one.name === parameter);
        return String(found?.schema.example);
      });
    const needed = operation?.parameters?.filter((one) => one.in === 'query' && one.required) ?? [];
    const query = needed.map((one) => `${one.name}=${String(one.schema.example)}`).join('&');
    const [type = ''] = Object.keys(operation?.requestBody?.content ?? {});
    const answer = await api.call(method, `${at}?${query}`, value, { 'content-type': type });
    const expected = Object.keys(operation?.responses ?? {}).filter((status) => status.startsWith('2'));
    expect([answer.status, expected, answer.text]).toEqual([
      answer.status,
      expect.arrayContaining([String(answer.status)]),
      answer.text,
    ]);
    if (id === 'claimRuns') runs = idsOf(answer);
  });

  /** Of the schedule of the examples. */
  async function keyOfObserved(): Promise<string> {
    const { body } = await api.call('PATCH', '/api/v1/schedules/nightly-report', { observe: {} });
    return body['pingKey'] as unknown as string;
  }

  function runOf(id: string): string {
    const run = id === 'completeRun' ? runs.shift() : runs[0];
    expect(run).toBeDefined();
    return run ?? '';
  }
});

type Tree = Record<string, unknown>;

interface ReadDocument {
  servers: { url: string }[];
  components: { schemas: Record<string, Tree> };
}

const NULL = { type: 'null' };
const A_TEXT = { type: 'string', maxLength: 9, description: 'A text.' };

describe('a form that generators of clients can read:', () => {
  test('a plain value or null is one type with two names, and what is said of both is kept', () => {
    const both = { anyOf: [A_TEXT, NULL], default: null, description: 'Outer.' };
    expect(inPlainForm({ properties: { a: both } })).toEqual({
      properties: { a: { type: ['string', 'null'], maxLength: 9, description: 'Outer.' } },
    });
    expect(inPlainForm({ anyOf: [A_TEXT, NULL] })).toEqual({ ...A_TEXT, type: ['string', 'null'] });
  });

  test.each([
    ['a set of words', [{ type: 'string', enum: ['a', 'b'] }, NULL]],
    ['an object', [{ type: 'object', properties: {} }, NULL]],
    ['a schema with a name', [{ $ref: '#/components/schemas/A' }, NULL]],
    ['one of three', [A_TEXT, { type: 'boolean' }, NULL]],
  ])('%s stays a choice', (_what, anyOf) => {
    expect(inPlainForm({ anyOf })).toEqual({ anyOf });
  });

  test('alternatives beside fields become a rule, with what fits them and what does not', () => {
    const fields = { type: 'object', properties: { a: A_TEXT, b: A_TEXT }, required: ['a'] };
    const oneOf = [{ required: ['a'], properties: { b: NULL } }, { required: ['b'] }];
    const rule = [{ required: ['a'], properties: { b: { const: null } } }, { required: ['b'] }];
    expect(inPlainForm({ ...fields, oneOf })).toEqual({ ...fields, if: { oneOf: rule }, else: { not: {} } });
    expect(inPlainForm({ ...fields, anyOf: oneOf })).toEqual({
      ...fields,
      if: { anyOf: rule },
      else: { not: {} },
    });
    expect(inPlainForm({ oneOf })).toEqual({ oneOf: rule });
  });

  test('a default stays where it is a plain value of a plain type, an example where it is not null', () => {
    const named = { $ref: '#/components/schemas/A' };
    const kept = [
      { type: 'integer', maximum: 60, default: 30, example: 1 },
      { type: 'boolean', default: false },
      { type: 'array', items: A_TEXT, default: [] },
    ];
    for (const schema of kept) expect(inPlainForm(schema)).toEqual(schema);
    expect(inPlainForm({ ...named, default: {} })).toEqual(named);
    expect(inPlainForm({ type: 'object', default: {} })).toEqual({ type: 'object' });
    expect(inPlainForm({ anyOf: [A_TEXT, named], default: 'a' })).toEqual({ anyOf: [A_TEXT, named] });
    expect(inPlainForm({ anyOf: [{ type: 'boolean' }, NULL], default: true, example: null })).toEqual({
      ...{ type: ['boolean', 'null'], default: true },
    });
  });

  test('a number that 32 bits may not hold says how large it may be', () => {
    const sized = (schema: Tree) => (inPlainForm(schema) as Tree)['format'];
    expect(sized({ type: 'integer', maximum: 2 ** 31 - 1 })).toBeUndefined();
    expect(sized({ type: 'integer', maximum: 2 ** 31 })).toBe('int64');
    expect(sized({ anyOf: [{ type: 'integer' }, NULL] })).toBe('int64');
    expect(sized({ type: 'number', maximum: 1 })).toBe('double');
    expect(sized({ type: 'string' })).toBeUndefined();
  });
});

describe('what is said once:', () => {
  const problem = (description: string) => ({ description, content: { 'application/problem+json': {} } });
  const ref = { $ref: '#/components/responses/Problem404' };

  test('problems that are equal; others stay where they are', () => {
    const gone = { description: 'Gone', content: { 'application/json': {} } };
    const operations = [
      { responses: { 200: gone, 404: problem('Unknown id') } },
      { responses: { 404: problem('Unknown id'), 503: gone } },
      { responses: { 404: problem('Unknown to others') } },
      {},
    ];
    expect(sharedAnswers(operations)).toEqual({ Problem404: problem('Unknown id') });
    expect(operations).toEqual([
      { responses: { 200: gone, 404: ref } },
      { responses: { 404: ref, 503: gone } },
      { responses: { 404: problem('Unknown to others') } },
      {},
    ]);
  });

  test('a body that requires more fields than another one, and is the same otherwise', () => {
    const properties = { id: A_TEXT, cron: A_TEXT, at: A_TEXT };
    const body = { type: 'object', properties, additionalProperties: false };
    const schemas = new Map<string, unknown>([
      ['WithIdInput', { ...body, required: ['id', 'cron'] }],
      ['DefinitionInput', { ...body, required: ['cron'] }],
      ['OtherInput', { ...body, required: ['at'] }],
      ['SameInput', { ...body, required: ['cron'] }],
      ['Answer', { ...body, required: ['cron', 'at'] }],
    ]);
    const changed = new Map(schemas).set('WithIdInput', {
      allOf: [
        { $ref: '#/components/schemas/DefinitionInput' },
        { type: 'object', properties: { id: A_TEXT }, required: ['id'] },
      ],
    });
    expect(withoutRepeats(schemas)).toEqual(changed);
  });
});

describe('in the document', () => {
  const { servers, components } = document as unknown as ReadDocument;
  const all = Object.entries(components.schemas).flatMap(([name, schema]) => within(name, schema));

  test('there is a server, for callers that know no other', () => {
    expect(servers).toEqual([{ url: '/' }]);
  });

  test.each<[sentence: string, isWrong: (schema: Tree, path: string) => boolean]>([
    ['a type is one, or one and null', ({ type }) => Array.isArray(type) && (type.length !== 2 || type[1] !== 'null')],
    ['a list says of what', ({ type, items }) => type === 'array' && !isObject(items)],
    [
      'what has fields has no alternatives beside them',
      (one) => 'properties' in one && ('oneOf' in one || 'anyOf' in one),
    ],
    ['no field is only null', ({ properties }) => isObject(properties) && Object.values(properties).some(isNull)],
    ['no example is null', ({ example }) => example === null],
    [
      'no default is null or an object',
      (one) => 'default' in one && typeof one['default'] === 'object' && !Array.isArray(one['default']),
    ],
    ['no default is beside a choice or a name', (one) => 'default' in one && !('type' in one)],
    ['no answer extends another', (one, path) => 'allOf' in one && !/^[A-Za-z]+Input\b/.test(path)],
    [
      'a list of words beside another type names their set',
      ({ anyOf }) => Array.isArray(anyOf) && anyOf.filter((one) => !isNull(one)).length > 1 && anyOf.some(listsWords),
    ],
    ['no format has a name that means something else elsewhere', ({ format }) => format === 'uri-template'],
    [
      'no schema with a name is a value or null',
      ({ anyOf }, path) => !path.includes('/') && Array.isArray(anyOf) && anyOf.some(isNull),
    ],
  ])('%s', (_sentence, isWrong) => {
    expect(all.length).toBeGreaterThan(900);
    expect(all.filter(({ schema, path }) => isWrong(schema, path)).map(({ path }) => path)).toEqual([]);
  });
});

function isNull(schema: unknown): boolean {
  return isObject(schema) && schema['type'] === 'null';
}

function listsWords(schema: unknown): boolean {
  return isObject(schema) && isObject(schema['items']) && 'enum' in schema['items'];
}

/** The schema, and those within it. Rules (`if`) are for who checks a value, not for who makes types. */
function within(path: string, schema: unknown): { path: string; schema: Tree }[] {
  if (!isObject(schema)) return [];
  const { properties, anyOf, oneOf, allOf, items, additionalProperties } = schema;
  const lists = { anyOf, oneOf, allOf };
  return [
    { path, schema },
    ...Object.entries(isObject(properties) ? properties : {}).flatMap(([name, one]) => within(`${path}/${name}`, one)),
    ...Object.entries(lists).flatMap(([key, list]) =>
      Array.isArray(list) ? list.flatMap((one) => within(`${path}/${key}`, one)) : [],
    ),
    ...within(`${path}/items`, items),
    ...within(`${path}/additionalProperties`, additionalProperties),
  ];
}
