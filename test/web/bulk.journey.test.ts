import { expect, it } from 'vitest';
import { newToken } from '../api/access/support.ts';
import { startReceiver } from '../support/receiver.ts';
import { until } from '../support/until.ts';
import { startStage } from './browser.ts';

it('an operator retries failed runs, an admin pauses by label, and a viewer is offered neither', async (context) => {
  const [admin, viewer, worker] = (['admin', 'viewer', 'worker'] as const).map((role) =>
    newToken(role, role),
  );
  if (!admin || !viewer || !worker) throw new Error('no tokens');
  const lines = [admin, viewer, worker].map(
    ({ known }) => `${known.name}:${known.role}:${known.hash.toString('hex')}`,
  );
  const { open, daemon } = await startStage(context, { FIRELOCK_API_TOKENS: lines.join(',') });
  let status = 400;
  const receiver = await startReceiver((_arrival, response) => {
    response.statusCode = status;
    response.end('{}');
  });
  const call = (method: string, path: string, body?: unknown) =>
    daemon.call(method, `/api/v1${path}`, body, admin.headers);
  for (const id of ['invoices', 'mails', 'reminders']) {
    const target = { type: 'http', url: receiver.url };
    await call('PUT', `/schedules/${id}`, { cron: '0 0 29 2 *', target, labels: { team: 'billing' } });
    await call('POST', `/schedules/${id}/fire`);
  }
  await until(async () => ((await runsWith('failed')) === 3 ? true : null));
  async function runsWith(wanted: string): Promise<number> {
    return ((await call('GET', `/runs?status=${wanted}`)).body as { items: unknown[] }).items.length;
  }
  status = 200;

  const { page, faults } = await open('/runs', { token: admin.secret, expected: [422] });
  expect(await page.getByRole('button', { name: 'Retry…' }).isDisabled()).toBe(true);
  await page.getByRole('button', { name: 'failed', exact: true }).click();
  await page.getByRole('button', { name: 'Retry…' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('3 runs match').waitFor();
  expect(await dialog.getByRole('listitem').count()).toBe(3);
  expect(await runsWith('failed')).toBe(3);
  await dialog.getByRole('button', { name: 'Retry', exact: true }).click();
  await page.getByRole('status').getByText('Retried 3 runs.').waitFor();
  await dialog.waitFor({ state: 'detached' });
  await until(async () => ((await runsWith('succeeded')) === 3 ? true : null));
  await page.getByText('No run matches this filter').waitFor();

  await page.getByRole('link', { name: 'Schedules' }).click();
  await page.getByLabel('Label, as key:value').fill('team:billing');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Pause…' }).click();
  await dialog.getByText('3 schedules match').waitFor();
  await dialog.getByLabel('Reason').fill('the <b>vendor</b> moves');
  await dialog.getByLabel(/^Until/).fill('2020-01-01T00:00');
  await dialog.getByRole('button', { name: 'Pause', exact: true }).click();
  await dialog.getByText('must be in the future').waitFor();
  expect(await dialog.getByLabel(/^Until/).getAttribute('aria-invalid')).toBe('true');
  await dialog.getByLabel(/^Until/).fill('');
  await dialog.getByRole('button', { name: 'Pause', exact: true }).click();
  await page.getByRole('status').getByText('Paused 3 schedules.').waitFor();
  await dialog.waitFor({ state: 'detached' });
  expect((await call('GET', '/schedules/mails')).body).toMatchObject({
    enabled: false,
    pauseReason: 'the <b>vendor</b> moves',
  });
  const paused = page.getByRole('region', { name: 'Schedules' }).getByText('paused', { exact: true });
  await expect.poll(() => paused.count()).toBe(3);
  await page.getByRole('button', { name: 'Save this filter' }).click();
  await page.getByLabel('Name of this filter').fill('ours');
  await page.keyboard.press('Enter');
  const address = new URL(page.url());
  await page.goto(address.origin + address.pathname);
  await page.getByRole('link', { name: 'ours' }).click();
  await page.getByTitle('Remove team:billing from the filter').waitFor();
  expect(page.url()).toBe(address.href);

  const seen = await open(address.pathname + address.search, { token: viewer.secret });
  await seen.page.getByText('reminders').waitFor();
  expect(await seen.page.getByText('paused', { exact: true }).count()).toBeGreaterThanOrEqual(3);
  expect(await seen.page.getByRole('button', { name: 'Pause…' }).count()).toBe(0);
  const refused = await open('/schedules', { token: worker.secret, expected: [403] });
  await refused.page.getByText('You may not do this').waitFor();
  await receiver.close();
  expect([...faults, ...seen.faults, ...refused.faults]).toEqual([]);
});
