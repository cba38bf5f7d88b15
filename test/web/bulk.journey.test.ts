// @module-tag long
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { newToken } from '../api/access/support.ts';
import { startReceiver } from '../support/receiver.ts';
import { until } from '../support/until.ts';
import { startStage } from './browser.ts';
import { layoutOf } from '../../web/src/pages/run/batch-layout.ts';

it('an operator retries failed runs, an admin acts on all of a label and on chosen schedules, and a viewer on none', async (context) => {
  const [admin, viewer, worker] = (['admin', 'viewer', 'worker'] as const).map((role) => newToken(role, role));
  if (!admin || !viewer || !worker) throw new Error('no tokens');
  const lines = [admin, viewer, worker].map(({ known }) => `${known.name}:${known.role}:${known.hash.toString('hex')}`);
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

  const { page, faults } = await open('/runs', { token: admin.secret, expected: [400, 412, 422, 429] });
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
  await actOnChosen(page, call);
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
  expect(await seen.page.getByRole('checkbox').count()).toBe(0);
  const refused = await open('/schedules', { token: worker.secret, expected: [403] });
  await refused.page.getByText('You may not do this').waitFor();
  await receiver.close();
  expect([...faults, ...seen.faults, ...refused.faults]).toEqual([]);
});

type Call = (method: string, path: string, body?: unknown) => Promise<{ status: number; body: unknown }>;

/** Of three paused schedules: two are resumed, all labelled, and two deleted. */
async function actOnChosen(page: Page, call: Call): Promise<void> {
  const dialog = page.getByRole('dialog');
  const press = (name: string) => dialog.getByRole('button', { name, exact: true }).click();
  const labelsOf = async (id: string) => ((await call('GET', `/schedules/${id}`)).body as Labelled).labels;
  await page.getByLabel('Choose mails').check();
  await page.getByLabel('Choose reminders').check();
  await page.getByRole('button', { name: 'Resume…' }).click();
  await dialog.getByRole('link', { name: 'mails' }).waitFor();
  expect(await dialog.getByRole('listitem').count()).toBe(2);
  await press('Resume');
  await page.getByRole('status').getByText('Resumed 2 schedules.').waitFor();
  expect((await call('GET', '/schedules/invoices')).body).toMatchObject({ enabled: false });
  expect((await call('GET', '/schedules/mails')).body).toMatchObject({ enabled: true });

  // A fault in what is typed stops it at the first; what each of them refuses is named.
  await page.getByLabel('Choose all on this page').check();
  await page.getByRole('button', { name: 'Label…' }).click();
  await dialog.getByLabel('Set the label').fill(`${'x'.repeat(64)}:1`);
  await press('Label');
  await dialog.getByRole('alert').getByText('invoices: labels/').waitFor();
  await call('PATCH', '/schedules/mails', { description: 'changed meanwhile' });
  await dialog.getByLabel('Set the label').fill('tier:1');
  await press('Label');
  const told = page.getByRole('status').filter({ hasText: 'Labelled 2 schedules. It was refused for 1 schedule:' });
  await told.getByRole('listitem').getByText('Somebody has changed it meanwhile').waitFor();
  expect(await told.getByRole('listitem').count()).toBe(1);
  expect(await Promise.all(['invoices', 'mails'].map(labelsOf))).toEqual([
    { team: 'billing', tier: '1' },
    { team: 'billing' },
  ]);
  expect(await page.getByLabel('Choose mails').isChecked()).toBe(true);
  expect(await page.getByLabel('Choose invoices').isChecked()).toBe(false);
  await told.getByRole('button', { name: 'Dismiss' }).click();

  // When the daemon takes no more calls, the others are not asked for.
  await page.getByLabel('Choose reminders').check();
  await page.getByRole('button', { name: 'Delete…' }).click();
  const refused = { status: 429, headers: { 'retry-after': '7' }, json: { detail: 'too many calls' } };
  await page.route('**/schedules/mails', (route) => route.fulfill(refused), { times: 1 });
  expect(await dialog.getByRole('button', { name: 'Delete', exact: true }).isDisabled()).toBe(true);
  await dialog.getByLabel('to delete as many schedules').fill('2');
  await press('Delete');
  await page.getByText('Too many calls. Try again in 7 seconds.').waitFor();
  await page.getByText('Not asked for, and still chosen: 1 schedule.').waitFor();
  await page.getByRole('button', { name: 'Delete…' }).click();
  await dialog.getByLabel('to delete as many schedules').fill('2');
  await press('Delete');
  await page.getByRole('status').getByText('Deleted 2 schedules.').waitFor();
  await expect.poll(() => page.getByLabel(/^Choose /).count()).toBe(2);
  for (const id of ['mails', 'reminders']) {
    const target = { type: 'http', url: 'http://127.0.0.1:9/' };
    await call('PUT', `/schedules/${id}`, {
      cron: '0 0 29 2 *',
      target,
      labels: { team: 'billing' },
      enabled: false,
    });
  }
}

interface Labelled {
  labels: Record<string, string>;
}

const target = { type: 'pull', queue: 'etl' };

it('the page of a run draws its batch, by status, leads to the others and to a list of all, and retries what failed for want of one', async (context) => {
  const { open, daemon } = await startStage(context);
  const { body } = await daemon.call('POST', '/api/v1/runs/batch', {
    ...{ name: 'etl', labels: { team: 'bi' } },
    items: [
      { ref: 'load', target, dependsOn: ['eu', 'us'] },
      { ref: 'extract', target },
      { ref: 'eu', target, dependsOn: ['extract'] },
      { ref: 'us', target, dependsOn: ['extract'] },
    ],
  });
  const items = (body as { items: { ref: string; id: string }[] }).items;
  const idOf = (wanted: string) => items.find(({ ref }) => ref === wanted)?.id ?? '';
  await daemon.call('POST', `/api/v1/runs/${idOf('extract')}/cancel`);
  const { page, faults } = await open(`/runs/${idOf('load')}`);
  const graph = page.getByRole('region', { name: 'Runs of the batch' });
  await graph.getByRole('link', { name: 'extract: cancelled' }).waitFor();
  await graph.getByRole('link', { name: 'us: failed' }).waitFor();
  expect(await graph.locator('path').count()).toBe(4);
  expect(await graph.locator('[aria-current]').getAttribute('aria-label')).toBe('load: failed');
  await graph.getByRole('link', { name: 'extract: cancelled' }).click();
  await page.waitForURL(`**/runs/${idOf('extract')}`);
  await page.getByRole('button', { name: 'Retry…' }).click();
  await page.getByLabel('Also the runs that failed for want of it').check();
  await page.getByRole('dialog').getByRole('button', { name: 'Retry' }).click();
  await graph.getByRole('link', { name: 'us: waiting' }).waitFor();
  await page.getByRole('link', { name: 'all in a list' }).click();
  await page.getByRole('region', { name: 'Runs', exact: true }).waitFor();
  expect(await page.getByRole('region', { name: 'Runs', exact: true }).locator('tbody tr').count()).toBe(4);
  expect(faults).toEqual([]);
});

it('each run stands in the column after all that it depends on; of very many runs some are left out, but not the one that is shown', () => {
  const item = (ref: string, ...dependsOn: string[]) => ({
    ref,
    id: ref,
    dependsOn,
    status: 'waiting' as const,
  });
  const { nodes, edges, columns, rows } = layoutOf(
    [item('d', 'c', 'a', 'other'), item('a'), item('b', 'a'), item('c', 'b')],
    'a',
    200,
  );
  expect(nodes.map(({ ref, column, row }) => [ref, column, row])).toEqual([
    ['d', 3, 0],
    ['a', 0, 0],
    ['b', 1, 0],
    ['c', 2, 0],
  ]);
  expect([edges.length, columns, rows]).toEqual([4, 4, 1]);
  const many = Array.from({ length: 1000 }, (_, n) => item(`n${n}`, ...(n === 0 ? [] : [`n${n - 1}`])));
  expect(layoutOf(many, 'n999', 200).nodes.map(({ ref }) => ref)).toEqual([
    ...many.slice(0, 200).map(({ ref }) => ref),
    'n999',
  ]);
});
