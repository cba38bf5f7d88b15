// @module-tag attack
// @module-tag long
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Api, SCHEDULE, startApi } from '../api/api.ts';
import { type Attack, ON_ANY, ON_BODIES, ON_IDS } from './attacks.ts';
import { expectHarmless, refusalIn, rowCounts } from './harmless.ts';

interface Operation {
  operationId?: string;
  requestBody?: { required?: boolean; content: Record<string, unknown> };
}

interface Route {
  method: string;
  path: string;
  hasBody: boolean;
  isBodyOptional: boolean;
}

const file = join(import.meta.dirname, '..', '..', 'openapi', 'openapi.json');
const { paths } = JSON.parse(readFileSync(file, 'utf8')) as {
  paths: Record<string, Record<string, Operation>>;
};
// What is wrong about a report is that nothing has its key: `pings.test.ts` has the rest.
const ofAll = Object.entries(paths).filter(([path]) => !path.includes('{key}'));
const routes = ofAll.flatMap(([path, operations]) =>
  Object.entries(operations).map(([method, { requestBody }]): Route => {
    // A text may be anything: `run-logs.test.ts` has what is refused.
    const hasBody = requestBody?.content['application/json'] !== undefined;
    return { method: method.toUpperCase(), path, hasBody, isBodyOptional: requestBody?.required !== true };
  }),
);

let api: Api;
let before: Record<string, number>;
/** By the way, so that what is attacked could have been found. */
let runId: string;
beforeAll(async () => {
  api = await startApi();
  await api.call('PUT', '/api/v1/schedules/there', SCHEDULE);
  await api.call('PUT', '/api/v1/limits/there', { maxRunning: 1 });
  await api.call('PUT', '/api/v1/calendars/there', { dates: [] });
  await api.call('PUT', '/api/v1/connections/there', { url: 'https://api.example' });
  runId = (await api.call('POST', '/api/v1/schedules/there/fire')).body['id'] as unknown as string;
  before = await rowCounts(api.sql);
});
afterAll(() => api.stop());

describe('every route', () => {
  test('is attacked in enough ways', () => {
    expect(routes.length).toBeGreaterThan(40);
    expect(routes.flatMap(attacksOn).length).toBeGreaterThan(1500);
  });

  test.each(routes.map((route) => [`${route.method} ${route.path}`, route] as const))(
    '%s refuses every attack, stores nothing and gives nothing away',
    async (_name, route) => {
      for (const attack of attacksOn(route)) {
        const answer = refusalIn(await api.raw(bytesOf(route, attack)));
        expectHarmless(attack.name, answer, attack.statuses);
        if (attack.method !== undefined && answer.status === 405)
          expect(answer.headers.get('allow')?.split(', ')).toContain(route.method);
      }
      expect(await rowCounts(api.sql)).toEqual(before);
      expect(api.warnings).toEqual([]);
    },
  );
});

function attacksOn({ path, hasBody, isBodyOptional }: Route): Attack[] {
  // Signs of life do not look at their query: a probe must be answered fast.
  const isInQuery = ({ suffix = '', statuses }: Attack) => suffix.startsWith('?') && !statuses.includes(431);
  const onAny = path.startsWith('/api/') ? ON_ANY : ON_ANY.filter((attack) => !isInQuery(attack));
  const onBodies = ON_BODIES.filter(({ isEmpty }) => isEmpty !== true || !isBodyOptional);
  return [...onAny, ...(path.includes('{') ? ON_IDS : []), ...(hasBody ? onBodies : [])];
}

function bytesOf(route: Route, { id, suffix = '', method, headers = [], body }: Attack): string {
  const known = route.path.includes('/runs/') ? runId : 'there';
  const path = route.path.replace(/\{.+?\}/, id ?? known);
  const content = Buffer.from(body ?? '').toString('latin1');
  const isFramed = headers.some((header) => /^(content-length|transfer-encoding):/i.test(header));
  const lines = [
    `${method ?? route.method} ${path}${suffix} HTTP/1.1`,
    'Host: localhost',
    'Connection: close',
    ...(isFramed || (body === undefined && !route.hasBody) ? [] : [`Content-Length: ${content.length}`]),
    ...headers,
  ];
  return `${lines.join('\r\n')}\r\n\r\n${content}`;
}
