// @module-tag long
import { expect, it } from 'vitest';
import { startStage } from './browser.ts';

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
