// @module-tag attack
import { readFileSync } from 'node:fs';
import { METHODS } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newToken } from '../api/access/support.ts';
import { type Api, startApi } from '../api/api.ts';
import { expectHarmless, refusalIn } from './harmless.ts';

const file = join(import.meta.dirname, '..', '..', 'openapi', 'openapi.json');
const { paths } = JSON.parse(readFileSync(file, 'utf8')) as {
  paths: Record<string, Record<string, unknown>>;
};
const declared = Object.entries(paths).map(([path, operations]) => {
  const methods = Object.keys(operations).map((method) => method.toUpperCase());
  return { path, methods: methods.includes('GET') ? [...methods, 'HEAD'] : methods };
});
/** A schedule can have these ids, and then the path is that schedule's as well. */
const ALSO_A_SCHEDULE = ['/api/v1/schedules/batch', '/api/v1/schedules/bulk'];

let api: Api;
beforeAll(async () => {
  api = await startApi('postgres://nobody:nothing@127.0.0.1:9/none');
});
afterAll(() => api.stop());

const call = async (method: string, path: string, to = api) =>
  refusalIn(
    // What Node wants to be told of a QUERY is no matter of ours.
    await to.raw(
      `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\r\n`,
    ),
  );

test.each(declared.map(({ path, methods }) => [path, methods] as const))(
  '%s answers 405 to every method but %j, and names these in Allow',
  async (path, methods) => {
    const isBoth = ALSO_A_SCHEDULE.includes(path);
    const allowed = [...methods, ...(isBoth ? ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE'] : [])].sort();
    const at = path
      .replace('{project}', '1')
      .replaceAll(/\{.+?\}/g, path.includes('/runs/') ? '019a9f00-0000-7000-8000-000000000000' : 'there');
    for (const method of METHODS.filter((one) => !allowed.includes(one) && one !== 'CONNECT')) {
      const answer = await call(method, at);
      // The answer to HEAD is never more than its head.
      if (method === 'HEAD') expect(answer.status).toBe(405);
      else expectHarmless(`${method} ${at}`, answer, [405]);
      expect([method, answer.headers.get('allow')]).toEqual([method, allowed.join(', ')]);
    }
  },
);

test('at an unknown path every method is 404, CONNECT is refused, and a method that does not exist is no HTTP', async () => {
  for (const method of METHODS.filter((one) => !['CONNECT', 'HEAD'].includes(one)))
    expectHarmless(method, await call(method, '/api/v1/nothing/here'), [404]);
  expectHarmless('CONNECT', await call('CONNECT', 'example.com:443'), [400]);
  for (const method of ['STEAL', 'get', 'G\u0001T', '', 'A'.repeat(1000)])
    expectHarmless(method, await call(method, '/healthz'), [400]);
});

test('without a token every method at every path is 401, so that a caller does not learn which paths exist', async () => {
  const { known } = newToken('ci', 'viewer');
  const guarded = await startApi('postgres://nobody:nothing@127.0.0.1:9/none', { apiTokens: [known] });
  try {
    const answers = [];
    for (const method of ['GET', 'TRACE', 'OPTIONS', 'DELETE'])
      for (const path of ['/api/v1/schedules', '/api/v1/nothing']) answers.push(await call(method, path, guarded));
    expect(answers.map(({ status, text }) => [status, text])).toEqual(Array(8).fill([401, answers[0]?.text]));
  } finally {
    await guarded.stop();
  }
});
