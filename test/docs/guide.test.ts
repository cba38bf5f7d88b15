import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Api, startApi } from '../api/api.ts';
import { runShellExample } from './shell-example.ts';

let api: Api;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.stop());

test('the example of a skipped fire does what the page says', async () => {
  const [created, skipped, upcoming, unskipped] = await runShellExample('guide.md', 'Skip one fire', api.url);
  expect(created).toMatchObject({ status: 'active', version: 1 });
  expect(skipped).toEqual({ fireAt: '2090-12-25T09:00:00.000Z', skipped: true });
  expect(upcoming).toMatchObject({
    items: [
      { fireAt: '2090-12-24T09:00:00.000Z' },
      { fireAt: '2090-12-25T09:00:00.000Z', skipped: true, skipReason: 'closed for Christmas' },
      { fireAt: '2090-12-26T09:00:00.000Z' },
    ],
  });
  expect(unskipped).toEqual({ fireAt: '2090-12-25T09:00:00.000Z', skipped: false });
});
