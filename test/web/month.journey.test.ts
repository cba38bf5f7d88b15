// @module-tag long
import type { Locator } from 'playwright-core';
import { expect, it } from 'vitest';
import { startStage } from './browser.ts';

it('a user types the last working day of the month, sees which day that is, and sees it move with a holiday', async (context) => {
  const { open, daemon } = await startStage(context);
  const put = async (path: string, body: unknown) => {
    expect((await daemon.call('PUT', `/api/v1${path}`, body)).status).toBeLessThan(300);
  };
  // 31 December 2030 is a Tuesday.
  await put('/calendars/bank', { dates: ['2030-12-31'] });
  // What is half typed is refused by the preview.
  const { page, faults } = await open('/schedules', { expected: [400, 422] });
  await page.getByRole('link', { name: 'New schedule' }).first().click();
  await page.getByLabel('Cron expression').fill('0 9 * * *');
  await page.getByLabel('Zone').fill('Europe/Berlin');
  await page.getByText('First and last moment, and on which days').click();
  await page.getByLabel('Not before').fill('2030-12-02T00:00');
  const month = page.getByRole('region', { name: 'Which days fire' });
  await page.getByRole('region', { name: 'When it fires' }).getByText('At 09:00').waitFor();
  expect(await month.count()).toBe(0);

  await page.getByLabel('sat', { exact: true }).check();
  await page.getByLabel('sun', { exact: true }).check();
  await page.getByLabel('Only the n-th of these days').fill('-1');
  const table = month.getByRole('table', { name: 'December 2030, Europe/Berlin' });
  await shows(table, 31, '09:00');
  await shows(table, 30, 'not picked');
  await shows(table, 28, 'excluded');
  await month.getByText('7, 14, 21, 28: Excluded by weekday sat.').waitFor();
  expect(await table.getByRole('columnheader').allTextContents()).toEqual([
    ...['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'],
  ]);

  await page.getByLabel('bank', { exact: true }).check();
  await shows(table, 30, '09:00');
  await shows(table, 31, 'excluded');
  await month.getByText('31: Excluded by calendar bank.').waitFor();

  await month.getByRole('button', { name: 'Next month' }).press('Enter');
  const january = month.getByRole('table', { name: 'January 2031, Europe/Berlin' });
  await shows(january, 31, '09:00');
  // What is typed now changes the month that is shown.
  await page.getByLabel('Only the n-th of these days').fill('-2');
  await shows(january, 30, '09:00');
  await month.getByRole('button', { name: 'Previous month' }).press('Enter');
  await shows(table, 27, '09:00');
  expect(faults).toEqual([]);
});

it('the page of a schedule shows where the fires of a holiday go', async (context) => {
  const { open, daemon } = await startStage(context);
  await daemon.call('PUT', '/api/v1/schedules/paid', {
    ...{
      cron: '0 9 * * WED',
      timezone: 'Europe/Berlin',
      startAt: '2030-12-01T00:00:00Z',
      onExcluded: 'next',
    },
    ...{ exclude: { dates: ['2030-12-25/2030-12-26'] }, target: { type: 'pull', queue: 'paid' } },
  });
  const { page, faults } = await open('/schedules/paid');
  const month = page.getByRole('region', { name: 'Which days fire' });
  const now = await month.getByRole('table').getByRole('caption').textContent();
  const [year, at] = [
    Number(now?.match(/\d{4}/)?.[0]),
    new Date(`1 ${now?.split(',')[0] ?? ''} UTC`).getUTCMonth(),
  ];
  for (let left = (2030 - year) * 12 + 11 - at; left > 0; left -= 1)
    await month.getByRole('button', { name: 'Next month' }).click();
  const table = month.getByRole('table', { name: 'December 2030, Europe/Berlin' });
  await shows(table, 25, 'moved to 27');
  await shows(table, 27, '09:00');
  await shows(table, 27, 'from 25');
  await month.getByText('25: Excluded by dates 2030-12-25/2030-12-26, and moved to 2030-12-27.').waitFor();
  expect(faults).toEqual([]);
});

/** Waits until the cell of a day says so. */
async function shows(table: Locator, day: number, text: string): Promise<void> {
  await table
    .getByRole('cell', { name: new RegExp(`^${day}\\b`) })
    .filter({ hasText: text })
    .waitFor();
}
