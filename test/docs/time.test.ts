import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Api, startApi } from '../api/api.ts';
import { runShellExample } from './shell-example.ts';

let api: Api;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.stop());

test('the example of several expressions does what the page says', async () => {
  const [created, upcoming] = await runShellExample('time.md', 'Several expressions', api.url);
  expect(created).toMatchObject({ cron: ['0 9 * * MON-FRI', '0 11 * * SAT'], status: 'active' });
  // Friday, Saturday, Monday.
  expect(upcoming).toEqual({
    items: [
      { fireAt: '2027-01-01T08:00:00.000Z', local: '2027-01-01T09:00:00.000+01:00' },
      { fireAt: '2027-01-02T10:00:00.000Z', local: '2027-01-02T11:00:00.000+01:00' },
      { fireAt: '2027-01-04T08:00:00.000Z', local: '2027-01-04T09:00:00.000+01:00' },
    ],
  });
});
