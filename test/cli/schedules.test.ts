import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Api, SCHEDULE, startApi } from '../api/api.ts';
import { firelock } from './cli.ts';

let api: Api;
beforeAll(async () => {
  api = await startApi();
  for (const [id, extra] of Object.entries({
    invoices: { labels: { team: 'billing' }, description: 'sends\nthem \u001b[31m' },
    reports: { timezone: 'Europe/Berlin' },
    sweep: { enabled: false },
  })) {
    expect((await api.call('PUT', `/api/v1/schedules/${id}`, { ...SCHEDULE, ...extra })).status).toBe(201);
  }
});
afterAll(() => api.stop());

const run = (...args: string[]) => firelock(args, { url: api.url });
const onTerminal = (terminal: number, ...args: string[]) =>
  firelock(args, { url: api.url, terminal, env: { NO_COLOR: '1' } });

test('schedule list: JSON elsewhere than on a terminal, a table there, page by page', async () => {
  const { code, json, err } = await run('schedule', 'list', '--all');
  expect([code, err]).toEqual([0, '']);
  expect(json()).toEqual((await api.call('GET', '/api/v1/schedules')).body);

  const two = await onTerminal(100, 'schedule', 'list', '--limit', '2');
  expect(two.out.split('\n').slice(0, -1)).toEqual([
    expect.stringMatching(/^ID +STATUS +WHEN +ZONE +NEXT FIRE$/),
    expect.stringMatching(/^invoices +active +0 12 29 2 \* +- +\d{4}-02-29 12:00:00Z$/),
    expect.stringMatching(/^reports +active +0 12 29 2 \* +Europe\/Berlin +\d{4}-02-29 11:00:00Z$/),
    'times are UTC',
    'there are more: --limit N, or --all',
  ]);
  const found = await run('schedule', 'list', '--label', 'team:billing', '--status', 'active');
  expect(found.json()).toMatchObject({ items: [{ id: 'invoices' }], nextCursor: null });
});
