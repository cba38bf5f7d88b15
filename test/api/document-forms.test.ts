import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { inPlainForm, sharedAnswers, withoutRepeats } from '../../src/api/document/document.ts';
import { isObject } from '../../src/api/http/json/json-body.ts';

type Tree = Record<string, unknown>;

interface Document {
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
  const file = join(import.meta.dirname, '..', '..', 'openapi', 'openapi.json');
  const { servers, components } = JSON.parse(readFileSync(file, 'utf8')) as Document;
  const all = Object.entries(components.schemas).flatMap(([name, schema]) => within(name, schema));

  test('there is a server, for callers that know no other', () => {
    expect(servers).toEqual([{ url: '/' }]);
  });

  test.each<[sentence: string, isWrong: (schema: Tree, path: string) => boolean]>([
    [
      'a type is one, or one and null',
      ({ type }) => Array.isArray(type) && (type.length !== 2 || type[1] !== 'null'),
    ],
    ['a list says of what', ({ type, items }) => type === 'array' && !isObject(items)],
    [
      'what has fields has no alternatives beside them',
      (one) => 'properties' in one && ('oneOf' in one || 'anyOf' in one),
    ],
    [
      'no field is only null',
      ({ properties }) => isObject(properties) && Object.values(properties).some(isNull),
    ],
    ['no example is null', ({ example }) => example === null],
    [
      'no default is null or an object',
      (one) => 'default' in one && typeof one['default'] === 'object' && !Array.isArray(one['default']),
    ],
    ['no default is beside a choice or a name', (one) => 'default' in one && !('type' in one)],
    ['no answer extends another', (one, path) => 'allOf' in one && !/^[A-Za-z]+Input\b/.test(path)],
    [
      'a list of words beside another type names their set',
      ({ anyOf }) =>
        Array.isArray(anyOf) && anyOf.filter((one) => !isNull(one)).length > 1 && anyOf.some(listsWords),
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
    ...Object.entries(isObject(properties) ? properties : {}).flatMap(([name, one]) =>
      within(`${path}/${name}`, one),
    ),
    ...Object.entries(lists).flatMap(([key, list]) =>
      Array.isArray(list) ? list.flatMap((one) => within(`${path}/${key}`, one)) : [],
    ),
    ...within(`${path}/items`, items),
    ...within(`${path}/additionalProperties`, additionalProperties),
  ];
}
