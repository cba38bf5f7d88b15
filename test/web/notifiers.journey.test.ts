// @module-tag long
import { expect, it } from 'vitest';
import { newToken } from '../api/access/support.ts';
import { startReceiver } from '../support/receiver.ts';
import { SECRET_KEYS } from '../support/secrets.ts';
import { startStage } from './browser.ts';

it('an admin makes a notifier, sees what it would send, tests it, and changes it without losing its secrets', async (context) => {
  const [admin, viewer] = (['admin', 'viewer'] as const).map((role) => newToken(role, role));
  if (!admin || !viewer) throw new Error('no tokens');
  const { open, daemon } = await startStage(context, {
    FIRELOCK_SECRET_KEYS: SECRET_KEYS,
    FIRELOCK_API_TOKENS: [admin, viewer]
      .map(({ known }) => `${known.name}:${known.role}:${known.hash.toString('hex')}`)
      .join(','),
  });
  const receiver = await startReceiver();
  const call = (method: string, path: string, body?: unknown) =>
    daemon.call(method, `/api/v1${path}`, body, admin.headers);
  const { page, faults } = await open('/notifiers', { token: admin.secret, expected: [400, 409, 412] });
  const dialog = page.getByRole('dialog');
  const main = page.getByRole('main');
  const field = (label: string) => dialog.getByLabel(label, { exact: true });
  const faulty = (label: string) => dialog.locator('.faulty', { has: page.getByLabel(label, { exact: true }) });
  const press = (name: string) => dialog.getByRole('button', { name, exact: true }).click();
  const edit = () => page.getByRole('button', { name: 'Edit team' }).click();

  await page.getByText('There are no notifiers').waitFor();
  await page.getByRole('button', { name: 'New notifier…' }).click();
  await field('Id').fill('team');
  await dialog.getByRole('checkbox', { name: /^slow/ }).uncheck();
  await field('Of schedules with these ids').fill('billing.*\nnot/an/id');
  await field('URL').fill('ftp://chat');
  await dialog.getByRole('group', { name: 'Headers', exact: true }).getByText('Add').click();
  await field('Headers: name 1').fill('X-Team');
  await field('Headers: value 1').fill('blue');
  await press('Save');
  await faulty('Of schedules with these ids')
    .getByText(/^1: must be the id of a schedule/)
    .waitFor();
  await faulty('URL').waitFor();
  await field('Of schedules with these ids').fill('billing.*');
  await field('URL').fill(`${receiver.url}/hook`);
  await field('Body').selectOption('template');
  await field('Text').fill('{"what": "{{payload/event}}", "first": {{payload/alerts/0/kind}}}');
  await field('The request').getByText('{"what": "opened", "first": "failed"}').waitFor();
  await press('Save');
  await main.getByText('failed, late, unstarted, tooFast, result, missed, paused, error').waitFor();
  await main.getByText('billing.*').waitFor();

  await page.getByRole('button', { name: 'Test team' }).click();
  await page.getByRole('heading', { name: 'Message of the notifier team' }).waitFor();
  const [arrival] = await receiver.arrived(1);
  expect([arrival?.text, arrival?.headers['x-team']]).toEqual(['{"what": "test", "first": null}', 'blue']);
  await main.getByText('succeeded').first().waitFor();
  await main.getByRole('link', { name: 'team', exact: true }).click();
  await page.waitForURL('**/notifiers?q=team');

  await edit();
  expect(await field('Headers: value 1').inputValue()).toBe('***');
  await field('URL').fill('http://127.0.0.1:9');
  await press('Save');
  await dialog.getByText(/must be given again/).waitFor();
  await press('Mail');
  await field('Addresses').fill('ops@example.com');
  await field('The mail').getByText('Subject: [firelock] billing.invoices failed').waitFor();
  await press('Save');
  await faulty('Channel')
    .getByText(/has no mail server/)
    .waitFor();
  await press('PagerDuty');
  await field('Routing key').fill('R0');
  await field('Headers: value 1').fill('red');
  await field('URL').fill(`${receiver.url}/duty`);
  await field('The request').getByText('"routing_key":"***"').waitFor();
  await press('Save');
  await main.getByText(`pagerduty: ${receiver.url}/duty`).waitFor();
  await page.getByRole('button', { name: 'Test team' }).click();
  const [, event] = await receiver.arrived(2);
  expect(JSON.parse(event?.text ?? '')).toMatchObject({ routing_key: 'R0', event_action: 'trigger' });
  await main.getByText('"routing_key":"***"').waitFor();

  await page.goto(`${daemon.url}/notifiers`);
  await call('PUT', '/notifiers/lead', {
    ...{ channel: { type: 'slack', target: { type: 'http', url: receiver.url } }, fallback: 'team' },
  });
  await edit();
  expect(await field('Routing key').inputValue()).toBe('***');
  await press('Delete');
  await dialog.getByRole('alert').getByText('lead').waitFor();
  const stored = (await call('GET', '/notifiers/team')).body as object;
  await call('PUT', '/notifiers/team', { ...stored, remindSeconds: 60 });
  await press('Save');
  await dialog.getByText('Somebody has changed it meanwhile').waitFor();
  await page.keyboard.press('Escape');

  const seen = await open('/notifiers', { token: viewer.secret });
  await seen.page.getByText('slack:').waitFor();
  expect(await seen.page.getByRole('button', { name: /notifier|Edit|Test/ }).count()).toBe(0);

  await call('DELETE', '/notifiers/lead');
  await edit();
  await press('Delete');
  await main.getByText('There are no notifiers').waitFor();
  await receiver.close();
  expect([...faults, ...seen.faults]).toEqual([]);
});
