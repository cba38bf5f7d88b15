// @module-tag long
import { expect, it } from 'vitest';
import { startReceiver } from '../support/receiver.ts';
import { startStage } from './browser.ts';

const BIG = '12345678901234567890.10';
const TEXT = '{"text": "{{payload/title}}", "sum": {{payload/sum}}, "run": "{{runId}}"}';

it('a user writes a body for an endpoint, sees it while typing, and meets it again on the pages of the schedule and the run', async (context) => {
  const { open, daemon } = await startStage(context);
  const receiver = await startReceiver((_arrival, response) => {
    response.statusCode = 409;
    response.end('{"ok": true}');
  });
  const { page, faults } = await open('/schedules/new', { expected: [400] });
  await page.getByLabel('Id', { exact: true }).fill('chat');
  await page.getByLabel('Cron expression').fill('0 2 29 2 *');
  await page.getByLabel('URL', { exact: true }).fill(`${receiver.url}/{{scheduleId}}`);
  await page.getByLabel('Payload', { exact: true }).fill(`{"title": "it's \\"€\\"", "sum": ${BIG}}`);
  const request = page.getByLabel('The request');
  await request.getByText('"scheduleId":"chat"').waitFor();
  await page.getByLabel('Body', { exact: true }).selectOption('template');
  const text = page.getByLabel('Text', { exact: true });
  await text.fill('{"text": {{payload.title}}}');
  const faulty = page.locator('.field.faulty', { has: text });
  await faulty.getByText(/has an unknown placeholder \{\{payload.title\}\}/).waitFor();
  await text.fill(TEXT);
  await faulty.waitFor({ state: 'detached' });
  await request.getByText(`POST ${receiver.url}/chat`).waitFor();
  await request.getByText(`"text": "it's \\"€\\"", "sum": ${BIG}`).waitFor();

  await page.getByText('What counts as a success, if not each 2xx').click();
  await page.getByLabel('Succeed on').fill('409, 7xx');
  await page.getByLabel('A success must have').selectOption('pointer');
  await page.getByLabel('Place in the JSON').fill('/ok');
  await page.getByLabel('Value there').fill('yes');
  await page.getByRole('button', { name: 'Create' }).click();
  await page.locator('.field.faulty', { has: page.getByLabel('Value there') }).waitFor();
  await page.getByLabel('Value there').fill('true');
  await page.getByRole('button', { name: 'Create' }).click();
  await page
    .locator('.field.faulty', { has: page.getByLabel('Succeed on') })
    .getByText(/^1: must be a status/)
    .waitFor();
  await page.getByLabel('Succeed on').fill('409');
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByRole('heading', { name: 'chat', level: 1 }).waitFor();
  await page.getByLabel('Text of the body').getByText(TEXT).waitFor();
  const rules = page.getByRole('list', { name: 'What its answers mean' });
  await rules.getByText('409: a success').waitFor();
  await rules.getByText('a success must have true at /ok').waitFor();

  await page.getByRole('link', { name: 'Edit' }).click();
  await page.getByLabel('Description').fill('nothing of it is touched');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.waitForURL('**/schedules/chat');
  const { body } = await daemon.call('GET', '/api/v1/schedules/chat');
  expect((body as { target: object }).target).toMatchObject({
    body: { template: TEXT, contentType: 'application/json' },
    outcome: { succeed: [409], require: { pointer: '/ok', equals: true }, otherwise: null },
  });

  const fired = (await daemon.call('POST', '/api/v1/schedules/chat/fire')).body as { id: string };
  const [arrival] = await receiver.arrived(1);
  await page.goto(`${daemon.url}/runs/${fired.id}`);
  await page.getByText('Attempt 1: the target took it', { exact: true }).waitFor();
  expect(arrival?.text).toBe(await page.getByLabel('Body of the request').textContent());
  await rules.getByText('409: a success').waitFor();
  await receiver.close();
  expect(faults).toEqual([]);
});
