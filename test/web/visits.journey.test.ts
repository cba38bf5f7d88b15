// @module-tag long
import { expect, it } from 'vitest';
import { newToken } from '../api/access/support.ts';
import { startStage } from './browser.ts';

it('a visitor without a token is asked for one, and in the end sees who they are and what became of the runs', async (context) => {
  const { secret, known } = newToken('grace', 'viewer');
  const line = `grace:viewer:${known.hash.toString('hex')}`;
  const { open } = await startStage(context, { FIRELOCK_API_TOKENS: line, FIRELOCK_BASE_PATH: '/ops/cron' });
  const { page, faults } = await open('/', { expected: [401] });
  await page.getByLabel('Token').waitFor();
  // Calls without a valid token are counted, and refused when there are too many.
  const asked = await page.evaluate<string[]>(
    `performance.getEntriesByType('resource').map(({ name }) => name).filter((name) => name.includes('/api/'))`,
  );
  expect(asked).toEqual([expect.stringMatching(/\/ops\/cron\/api\/v1\/me$/)]);
  await page.getByLabel('Token').fill('flk_nonsense');
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByText('firelock does not know this token').waitFor();
  await page.getByLabel('Token').fill(secret);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByText('grace', { exact: false }).waitFor();
  await page.getByRole('link', { name: 'Runs' }).click();
  await page.getByRole('heading', { name: 'Runs', exact: true }).waitFor();
  expect(new URL(page.url()).pathname).toBe('/ops/cron/runs');
  await page.reload();
  await page.getByRole('heading', { name: 'Runs', exact: true }).waitFor();
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByRole('heading', { name: 'Log in to firelock' }).waitFor();
  expect(faults).toEqual([]);
});

it('a page that is loaded later comes with its first use; where its file cannot be had, the page says so and can be loaded again', async (context) => {
  const stage = await startStage(context);
  const { page } = await stage.open('/');
  const asked: string[] = [];
  page.on('request', (request) => void asked.push(request.url()));
  await page.route('**/assets/setup-pages-*', (route) => route.abort());
  await page.getByRole('link', { name: 'Load', exact: true }).click();
  await page.getByRole('heading', { name: 'This page could not be loaded' }).waitFor();
  await page.unroute('**/assets/setup-pages-*');
  await page.getByRole('button', { name: 'Reload' }).click();
  await page.getByRole('heading', { level: 1, name: 'Load' }).waitFor();
  expect(asked.some((url) => url.includes('form-pages-'))).toBe(false);
  await page.goto(`${stage.daemon.url}/schedules/new`);
  await page.getByRole('heading', { level: 1, name: 'New schedule' }).waitFor();
  expect(asked.some((url) => url.includes('form-pages-'))).toBe(true);
});

it('a banner on every page says that an instance only observes, and what ends that', async (context) => {
  const { open } = await startStage(context, { FIRELOCK_OBSERVE: '1' });
  const { page, faults } = await open('/');
  const banner = page.getByRole('status').filter({ hasText: 'This instance only observes' });
  await banner.waitFor();
  expect(await banner.innerText()).toMatch(/because FIRELOCK_OBSERVE is set.* until firelock take-over/);
  expect(faults).toEqual([]);
});
