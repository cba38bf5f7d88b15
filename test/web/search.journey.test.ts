// @module-tag long
import { expect, it } from 'vitest';
import { startStage } from './browser.ts';

it('a user with only the keyboard finds a schedule, a run, a label and a page, and fires and pauses by name', async (context) => {
  const { open, daemon } = await startStage(context);
  const call = async (method: string, path: string, body?: unknown) =>
    (await daemon.call(method, `/api/v1${path}`, body)).body as { id: string; enabled: boolean };
  const target = { type: 'pull', queue: 'boxes' };
  const labels = { team: 'billing' };
  for (const id of ['invoices', 'mails']) await call('PUT', `/schedules/${id}`, { cron: '0 0 29 2 *', target, labels });
  const run = await call('POST', '/runs', { target, key: 'order-17' });

  const { page, faults } = await open('/');
  await page.getByRole('heading', { level: 1 }).waitFor();
  const box = page.getByRole('combobox', { name: 'Search' });
  const option = (name: string | RegExp) => page.getByRole('option', { name });
  const selected = page.getByRole('listbox', { name: 'Found' }).getByRole('option', { selected: true });
  const chosen = () => selected.innerText();

  await page.keyboard.press('/');
  await box.pressSequentially('order-17');
  await option(/Run with the key order-17/).waitFor();
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.pathname === `/runs/${run.id}`);
  await box.waitFor({ state: 'detached' });

  await page.keyboard.press('Control+k');
  await box.fill('team:billing');
  await option('label Schedules with team:billing').waitFor();
  await option('label Runs with team:billing').waitFor();
  expect(await chosen()).toContain('Schedules with');
  await page.keyboard.press('ArrowDown');
  await expect.poll(chosen).toContain('Runs with');
  expect(await box.getAttribute('aria-activedescendant')).toBe(await selected.getAttribute('id'));
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.search === '?label=team%3Abilling');

  await page.keyboard.press('Control+k');
  await box.fill('pause invo');
  await option(/Pause invoices/).waitFor();
  await page.keyboard.press('Enter');
  await page.getByText('invoices is paused.').waitFor();
  expect(await call('GET', '/schedules/invoices')).toMatchObject({ enabled: false });
  await page.keyboard.press('Control+k');
  await box.fill('fire mails');
  await option(/Fire mails/).waitFor();
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.pathname.startsWith('/runs/'));

  await page.keyboard.press('Control+k');
  await box.fill(run.id);
  await option(/Run of a task asked for once/).waitFor();
  await page.keyboard.press('Escape');
  await box.waitFor({ state: 'detached' });
  await page.keyboard.press('/');
  await box.fill('overv');
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.pathname === '/');
  expect(faults).toEqual([]);
});
