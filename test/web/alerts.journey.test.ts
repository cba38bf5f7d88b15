// @module-tag long
import { expect, it } from 'vitest';
import { startReceiver } from '../support/receiver.ts';
import { startStage } from './browser.ts';

/** More than a page of them has. */
const BROKEN = 52;

it('what breaks is seen at once, on all pages that tell of it, until it is well again', async (context) => {
  const { open, daemon } = await startStage(context);
  let status = 400;
  const receiver = await startReceiver((_arrival, response) => {
    response.statusCode = status;
    response.end('no <b>such</b> invoice');
  });
  const call = (method: string, path: string, body?: unknown) => daemon.call(method, `/api/v1${path}`, body);
  const { page, faults } = await open('/');
  const alerts = page.getByRole('region', { name: 'Open alerts' });
  const rows = page.getByRole('region', { name: 'Alerts', exact: true }).locator('tbody tr');
  const fire = (id: string) => call('POST', `/schedules/${id}/fire`);

  await page.getByText('Nothing fires here yet').waitFor();
  expect(await alerts.count()).toBe(0);
  for (let index = 0; index < BROKEN; index += 1) {
    const target = { type: 'http', url: receiver.url };
    await call('PUT', `/schedules/bill.${index}`, { cron: '0 0 29 2 *', target });
    await fire(`bill.${index}`);
  }
  // A page's place is that of its newest row: each must have broken before the second page is asked for.
  const countOpen = async () =>
    ((await call('GET', '/alerts?open=true&limit=100')).body as { items: unknown[] }).items.length;
  await expect.poll(countOpen).toBe(BROKEN);
  await alerts.getByText('answered 400').first().waitFor();
  await page.getByText('and more: these are the newest').waitFor();
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Alerts' }).click();
  await page.getByRole('link', { name: 'Next page' }).click();
  await page.getByRole('link', { name: 'Newest' }).waitFor();
  await expect.poll(() => rows.count()).toBe(BROKEN - 50);
  await page.getByRole('link', { name: 'Newest' }).click();

  await page.getByLabel("Schedule's id").fill('bill.7');
  await expect.poll(() => rows.count()).toBe(1);
  await rows.getByText('still open').waitFor();
  await rows.getByRole('link', { name: /^…/ }).click();
  await page.getByRole('heading', { name: 'Run of bill.7' }).getByRole('link').click();
  await alerts.getByText('failed').waitFor();
  status = 200;
  await fire('bill.7');
  await alerts.waitFor({ state: 'detached' });
  await page.getByRole('link', { name: 'Its alerts' }).click();
  await rows.getByText(/^after /).waitFor();
  await page.getByLabel('Open or over').selectOption('open');
  await page.getByText('No alert matches this filter').waitFor();
  expect(page.url()).toBe(`${daemon.url}/alerts?scheduleId=bill.7&open=true`);
  await receiver.close();
  expect(faults).toEqual([]);
});
