import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Api, startApi } from './api.ts';

let api: Api;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.stop());

interface Example {
  method: string;
  path: string;
  body: string | undefined;
}

/** The curl commands of docs/bulk.md, in their order. */
function examples(): Example[] {
  const page = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'bulk.md'), 'utf8');
  const commands = [...page.matchAll(/^```sh\n(.*?)^```/gms)].flatMap(([, block = '']) =>
    block.split(/^(?=curl )/m),
  );
  return commands.map((command) => {
    const [, method = 'GET', path = ''] =
      /^curl (?:-X (\w+) )?'?http:\/\/127\.0\.0\.1:8080([^\s']+)/.exec(command) ?? [];
    return { method, path, body: /-d '(.*)'/s.exec(command)?.[1] };
  });
}

test('every command of the page does what the page says', async () => {
  const headers = { authorization: 'Bearer old' };
  const target = { type: 'http', url: 'http://127.0.0.1:9000/invoices', headers };
  const labels = { team: 'billing', tier: 'batch' };
  await api.call('PUT', '/api/v1/schedules/invoices', { cron: '0 6 * * *', labels, target });
  await api.call('POST', '/api/v1/schedules/invoices/fire');
  const answers = [];
  for (const { method, path, body } of examples()) {
    const answer = await api.call(method, path, body);
    expect([path, answer.status]).toEqual([path, 200]);
    answers.push(answer.body);
  }
  const [dryPause, pause, resume, retry, cancel, batch, schedules, runs] = answers;
  expect(dryPause).toEqual({ matched: 1, changed: 0, remaining: 1, sample: ['invoices'] });
  expect(pause).toEqual({ matched: 1, changed: 1, remaining: 0, sample: ['invoices'] });
  expect(resume).toEqual({ matched: 1, changed: 1, remaining: 0, sample: ['invoices'] });
  expect(retry).toEqual({ matched: 0, changed: 0, remaining: 0, sample: [] });
  expect(cancel).toMatchObject({ matched: 1, changed: 1, remaining: 0 });
  expect(batch).toEqual({
    created: 0,
    updated: 1,
    unchanged: 0,
    changes: [
      {
        id: 'invoices',
        change: 'updated',
        fields: [
          { path: '/cron', before: '0 6 * * *', after: '30 6 * * *' },
          { path: '/target/headers/authorization', before: '***', after: '***' },
        ],
      },
    ],
  });
  expect(schedules).toMatchObject({ items: [{ id: 'invoices', recentRuns: [{ status: 'cancelled' }] }] });
  expect(runs).toEqual({ items: [], nextCursor: null });
  expect(answers).toHaveLength(8);
});
