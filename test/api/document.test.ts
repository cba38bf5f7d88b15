import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type Contract, contractLines } from '../../scripts/support/contract-lines.ts';
import { EXAMPLES } from '../../src/api/document/examples.ts';
import { type Api, type Answer, startApi } from './api.ts';

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
      ([method, operation]) =>
        [operation.operationId, { path, method: method.toUpperCase(), operation }] as const,
    ),
  ),
);

const PROBLEM = ['application/problem+json', '#/components/schemas/Problem'];

function answersOf(
  responses: Operation['responses'],
): [status: string, type: string, named: string | undefined][] {
  return Object.entries(responses).flatMap(([status, response]) =>
    Object.entries(answer(response).content ?? {}).map(
      ([type, { schema }]) =>
        [status, type, schema.$ref ?? schema.type] as [string, string, string | undefined],
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
        else
          expect([operationId, named]).toEqual([
            operationId,
            type === 'text/plain' ? 'string' : expect.any(String),
          ]);
      }
    }
    for (const name of (
      'Schedule ScheduleInput Run Problem Calendar CalendarInput Limit LimitInput Connection ' +
      'ConnectionInput'
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
    for (const name of ['Problem429', 'Problem503'])
      expect(responses[name]?.headers).toHaveProperty('Retry-After');
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
  expect(
    changedBy(({ paths }) => Object.assign(paths['/api/v1/schedules']?.['get'] ?? {}, { summary: '' })),
  ).toEqual([expect.stringContaining(call)]);
  const withMood = ({ components }: Document) =>
    Object.assign(components.schemas['Schedule']?.properties ?? {}, { mood: { type: 'string' } });
  expect(changedBy(withMood)).toEqual([expect.stringMatching(/^Schedule \{.* mood\} [0-9a-f]{8}$/)]);
  expect(changedBy(({ servers }) => servers.pop())).toEqual([expect.stringContaining('all else ')]);
  expect(changedBy(({ info }) => Object.assign(info, { version: '9.0.0' }))).toEqual([]);
});

describe('every example works as it stands:', () => {
  let api: Api;
  /** What the worker of the examples has claimed, and not yet reported on. */
  let runs: string[] = [];
  beforeAll(async () => {
    api = await startApi();
    const run = { target: { type: 'pull', queue: 'reports' } };
    for (let count = 0; count < 4; count += 1) await api.call('POST', '/api/v1/runs', run);
  });
  afterAll(async () => {
    expect(api.warnings).toEqual([]);
    await api.stop();
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
    if (id === 'claimRuns') runs = idsIn(answer);
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

function idsIn({ body }: Answer): string[] {
  return (body['items'] as unknown as { id: string }[]).map(({ id }) => id);
}

test('/docs wears our name and our icon, and loads nothing from elsewhere', async () => {
  const api = await startApi();
  onTestFinished(() => api.stop());
  const { text, headers } = await api.call('GET', '/docs/');
  expect(text).toContain('<title>firelock: the API</title>');
  expect(text).not.toMatch(/Swagger UI<\/title>|(?:src|href)="https?:/);
  expect(headers.get('content-security-policy')).toContain("default-src 'none'");
  const [, icon = ''] = /rel="icon"[^>]*href="([^"]+)"/.exec(text) ?? [];
  const answer = await api.call('GET', new URL(icon, `${api.url}/docs/`).pathname);
  expect([answer.status, answer.text]).toEqual([200, expect.stringContaining('#d9480f')]);
  expect(readFileSync(join('web', 'src', 'icon.svg'), 'utf8')).toContain(/d="[^"]+"/.exec(answer.text)?.[0]);
});
