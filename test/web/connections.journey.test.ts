// @module-tag long
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { newToken } from '../api/access/support.ts';
import { startReceiver } from '../support/receiver.ts';
import { SECRET_KEYS } from '../support/secrets.ts';
import { startStage } from './browser.ts';

it('an admin makes a connection, a schedule uses it as the form shows, and nobody deletes it meanwhile', async (context) => {
  const [admin, viewer] = (['admin', 'viewer'] as const).map((role) => newToken(role, role));
  if (!admin || !viewer) throw new Error('no tokens');
  const files = mkdtempSync(join(tmpdir(), 'firelock-files-'));
  onTestFinished(() => rmSync(files, { recursive: true }));
  writeFileSync(join(files, 'chat-token'), 'from the file');
  const { open, daemon } = await startStage(context, {
    ...{ FIRELOCK_SECRET_KEYS: SECRET_KEYS, FIRELOCK_SECRETS_DIR: files },
    FIRELOCK_API_TOKENS: [admin, viewer]
      .map(({ known }) => `${known.name}:${known.role}:${known.hash.toString('hex')}`)
      .join(','),
  });
  const receiver = await startReceiver();
  const call = (method: string, path: string, body?: unknown) =>
    daemon.call(method, `/api/v1${path}`, body, admin.headers);
  const { page, faults } = await open('/connections', { token: admin.secret, expected: [400, 409, 412] });
  const dialog = page.getByRole('dialog');
  const main = page.getByRole('main');
  const token = dialog.getByLabel('Token', { exact: true });
  const faulty = (label: string) => dialog.locator('.faulty', { has: page.getByLabel(label, { exact: true }) });
  const save = () => dialog.getByRole('button', { name: 'Save' }).click();
  const edit = () => page.getByRole('button', { name: 'Edit chat' }).click();

  await page.getByText('There are no connections').waitFor();
  await page.getByRole('button', { name: 'New connection…' }).click();
  await dialog.getByLabel('Id', { exact: true }).fill('chat');
  await dialog.getByLabel('URL', { exact: true }).fill('ftp://chat');
  await dialog.getByLabel('How it logs in').selectOption('bearer');
  await dialog.getByRole('group', { name: 'Headers', exact: true }).getByText('Add').click();
  await dialog.getByLabel('Headers: name 1').fill('X-Team');
  await dialog.getByLabel('Headers: value 1').fill('blue');
  await save();
  await faulty('URL').waitFor();
  await faulty('Token').waitFor();
  await dialog.getByLabel('URL', { exact: true }).fill(`${receiver.url}/v1`);
  await token.fill('the first one');
  await save();
  await main.getByText('by a token').waitFor();

  await edit();
  expect([await token.inputValue(), await dialog.getByLabel('Headers: value 1').inputValue()]).toEqual(['***', '***']);
  await dialog.getByLabel('URL', { exact: true }).fill('http://127.0.0.1:9');
  await save();
  await faulty('Token')
    .getByText(/must be given again/)
    .waitFor();
  await dialog.getByLabel('URL', { exact: true }).fill(`${receiver.url}/v1`);
  await dialog.getByLabel('Token: the name of a file').check();
  await token.fill('../chat-token');
  await save();
  await faulty('Token')
    .getByText(/^file: must be a name/)
    .waitFor();
  await token.fill('chat-token');
  await save();
  await main.getByText('by a token (file chat-token)').waitFor();

  await page.goto(`${daemon.url}/schedules/new`);
  await page.getByLabel('Id', { exact: true }).fill('talk');
  await page.getByLabel('Cron expression').fill('0 2 29 2 *');
  await page.getByLabel('Connection', { exact: true }).fill('chat');
  await page.getByLabel('Path below the URL of the connection').fill('/say/{{scheduleId}}');
  const request = page.getByLabel('The request');
  await request.getByText(`POST ${receiver.url}/v1/say/talk`).waitFor();
  await request.getByText(/x-team: \*\*\*\s+authorization: \*\*\*/).waitFor();
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByRole('heading', { name: 'talk', level: 1 }).waitFor();
  await call('POST', '/schedules/talk/fire');
  const [arrival] = await receiver.arrived(1);
  expect([arrival?.path, arrival?.headers.authorization]).toEqual(['/v1/say/talk', 'Bearer from the file']);

  await main.getByRole('link', { name: 'chat' }).click();
  await page.waitForURL('**/connections?q=chat');
  await edit();
  await dialog.getByRole('button', { name: 'Delete' }).click();
  await dialog.getByRole('alert').getByText('talk').waitFor();
  await call('PUT', '/connections/chat', { url: receiver.url });
  await save();
  await dialog.getByText('Somebody has changed it meanwhile').waitFor();
  await page.keyboard.press('Escape');

  const seen = await open('/connections', { token: viewer.secret });
  await seen.page.getByText('not at all').waitFor();
  expect(await seen.page.getByRole('button', { name: /connection|Edit/ }).count()).toBe(0);

  await call('DELETE', '/schedules/talk');
  await edit();
  await dialog.getByRole('button', { name: 'Delete' }).click();
  await main.getByText('No connection matches this filter').waitFor();
  await receiver.close();
  expect([...faults, ...seen.faults]).toEqual([]);
});

const KEPT = `whsec_${Buffer.alloc(32, 3).toString('base64')}`;

it('an untouched secret stays, a new one signs beside it, and each run appears while it is watched', async (context) => {
  const { open, daemon } = await startStage(context, {
    ...{ FIRELOCK_SECRET_KEYS: SECRET_KEYS, FIRELOCK_METRICS_PORT: '0' },
  });
  const receiver = await startReceiver();
  const headers = { authorization: 'Bearer abc' };
  const target = { type: 'http', url: receiver.url, secret: KEPT, headers };
  await daemon.call('PUT', '/api/v1/schedules/signed', { cron: '0 2 29 2 *', target });
  // With signs of life on another port, the page asks for none.
  const { page, faults } = await open('/', { expected: [400] });
  await page.getByRole('region', { name: 'Instances' }).waitFor();
  const edit = async (change: () => Promise<void>) => {
    await page.goto(`${daemon.url}/schedules/signed/edit`);
    await change();
    await page.getByRole('button', { name: 'Save' }).click();
  };
  // The heading of the form has the name, too.
  const saved = () => page.waitForURL('**/schedules/signed');
  const secret = page.getByLabel('Signing secret');

  await edit(async () => {
    expect(await secret.inputValue()).toBe('***');
    expect(await page.getByLabel('Headers: value 1').inputValue()).toBe('***');
    await page.getByLabel('Description').fill('nothing of it is touched');
  });
  await saved();
  await edit(async () => {
    await page.getByRole('button', { name: 'Make one' }).click();
    expect(await secret.inputValue()).toMatch(/^\*{3}\nwhsec_[A-Za-z0-9+/]{43}=$/);
  });
  await saved();
  await edit(() => page.getByLabel('URL', { exact: true }).fill('http://localhost:9/elsewhere'));
  await page
    .locator('.faulty', { has: secret })
    .getByText(/must be given again/)
    .first()
    .waitFor();

  await page.goto(`${daemon.url}/runs`);
  await page.getByText('There are no runs yet').waitFor();
  await page.getByRole('button', { name: 'Live tail' }).click();
  for (const count of [1, 2]) {
    await daemon.call('POST', '/api/v1/schedules/signed/fire');
    await expect.poll(() => page.getByRole('link', { name: 'signed' }).count()).toBe(count);
  }
  const [first] = await receiver.arrived(2);
  expect(first?.headers.authorization).toBe('Bearer abc');
  expect(String(first?.headers['webhook-signature']).split(' ')).toHaveLength(2);
  await receiver.close();
  expect(faults).toEqual([]);
});
