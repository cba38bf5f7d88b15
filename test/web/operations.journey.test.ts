// @module-tag long
import { expect, it } from 'vitest';
import { newToken } from '../api/access/support.ts';
import { startStage } from './browser.ts';

const HERD = 12;

it('an admin sees the load, edits limits and calendars, turns maintenance on, and finds it all in the audit', async (context) => {
  const [admin, viewer] = (['admin', 'viewer'] as const).map((role) => newToken(role, role));
  if (!admin || !viewer) throw new Error('no tokens');
  const { open, daemon } = await startStage(context, {
    FIRELOCK_API_TOKENS: [admin, viewer]
      .map(({ known }) => `${known.name}:${known.role}:${known.hash.toString('hex')}`)
      .join(','),
  });
  const call = (method: string, path: string, body?: unknown) =>
    daemon.call(method, `/api/v1${path}`, body, admin.headers);
  const target = { type: 'pull', queue: 'boxes' };
  const items = [...Array(HERD).keys()].map((index) => ({
    ...{ id: `herd-${index}`, cron: '0 0 3 * * *', target, limit: index === 0 ? 'warehouse' : null },
    exclude: index === 0 ? { calendars: ['holidays'] } : null,
  }));
  const { page, faults } = await open('/limits', { token: admin.secret, expected: [400, 409, 412, 422] });
  const dialog = page.getByRole('dialog');
  const main = page.getByRole('main');

  await page.getByRole('button', { name: 'New limit…' }).click();
  await dialog.getByLabel('Id').fill('warehouse');
  await dialog.getByLabel('At most running at once').fill('many');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.locator('.faulty .fault').waitFor();
  await dialog.getByLabel('At most running at once').fill('2');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await main.getByText('0 of 2').waitFor();

  const navigation = page.getByRole('navigation', { name: 'Pages' });
  const header = page.locator('header.top');
  expect((await header.boundingBox())?.height).toBeLessThan(60);
  expect(await navigation.locator('> *').allInnerTexts()).toEqual([
    ...['Overview', 'Schedules', 'Runs', 'Alerts', 'Load', 'Settings'],
  ]);
  const settings = async (name: string): Promise<void> => {
    await navigation.getByText('Settings', { exact: true }).click();
    await navigation.getByRole('link', { name, exact: true }).click();
  };
  await settings('Calendars');
  await page.getByRole('button', { name: 'New calendar…' }).click();
  await dialog.getByLabel('Id', { exact: true }).fill('holidays');
  await dialog.getByLabel('Days').fill('2031-12-24\n2031-13-01');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.locator('.fault').getByText(/^1: /).waitFor();
  await dialog.getByLabel('Days').fill('2031-12-24\n2031-12-31/2032-01-02');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await main.getByText('2031-12-31/2032-01-02').waitFor();
  expect((await call('POST', '/schedules/batch', { items })).status).toBe(200);
  await page.getByRole('button', { name: 'Edit holidays' }).click();
  await dialog.getByRole('button', { name: 'Delete' }).click();
  await dialog.getByRole('alert').getByText('herd-0').waitFor();
  await call('PUT', '/calendars/holidays', { dates: ['2031-12-25'] });
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.getByText('Somebody has changed it meanwhile').waitFor();
  await page.keyboard.press('Escape');

  await page.getByRole('link', { name: 'Load' }).click();
  await page.getByRole('button', { name: `${HERD} fires in the minute from` }).click();
  await dialog.getByText(`${HERD} at`).waitFor();
  await dialog.getByRole('link', { name: 'herd-11' }).waitFor();
  await page.keyboard.press('Escape');

  await settings('Maintenance');
  await main.getByLabel('Reason').fill('the <b>database</b> moves');
  await main.getByRole('button', { name: 'Turn maintenance on' }).click();
  await page.getByText('the <b>database</b> moves').waitFor();
  const seen = await open('/runs', { token: viewer.secret });
  await seen.page.getByText('the <b>database</b> moves').waitFor();
  await seen.page.getByText('Settings', { exact: true }).click();
  await seen.page.getByRole('link', { name: 'Calendars' }).waitFor();
  expect(await seen.page.getByRole('link', { name: 'Audit' }).count()).toBe(0);
  await main.getByRole('button', { name: 'End maintenance' }).click();
  await page.getByRole('link', { name: 'Maintenance is on' }).waitFor({ state: 'detached' });

  await settings('Audit');
  await main.getByLabel('Action').selectOption('calendar.put');
  await expect.poll(() => main.getByRole('cell', { name: 'calendar.put' }).count()).toBe(2);
  expect([...faults, ...seen.faults]).toEqual([]);
});
