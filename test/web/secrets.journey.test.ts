// @module-tag long
import { expect, it } from 'vitest';
import { startReceiver } from '../support/receiver.ts';
import { SECRET_KEYS } from '../support/secrets.ts';
import { startStage } from './browser.ts';

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
