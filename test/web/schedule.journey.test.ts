// @module-tag long
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';
import { expect, it, onTestFinished } from 'vitest';
import { newToken } from '../api/access/support.ts';
import { type Daemon, readyDaemon } from '../support/daemon.ts';
import { sqlOfTest } from '../support/of-test.ts';
import { startReceiver } from '../support/receiver.ts';
import { until } from '../support/until.ts';
import { type Stage, startStage, startStageOf } from './browser.ts';

const BIG = '{"big":12345678901234567890.10}';
const HOSTILE = `<script>document.title = 'taken over'</script> \u202e evil \u202c ${'long'.repeat(230)}`;

const roles = ['admin', 'operator', 'viewer'] as const;
const known = roles.map((role) => ({ role, ...newToken(role, role) }));
const tokenOf = (role: (typeof roles)[number]) => known.find((one) => one.role === role)?.secret ?? '';
/** As the daemon's file of tokens has them. */
const tokenLines = (operatorsRole: string) =>
  known
    .map(
      ({ role, known: { hash } }) => `${role}:${role === 'operator' ? operatorsRole : role}:${hash.toString('hex')}\n`,
    )
    .join('');

it('an admin makes a schedule in the browser, fires it, pauses it, learns why it did not run, takes it all back, and watches a job that runs elsewhere', async (context) => {
  const folder = await mkdtemp(join(tmpdir(), 'firelock-tokens-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const tokens = join(folder, 'tokens');
  await writeFile(tokens, tokenLines('operator'));
  const start = (url: string) => readyDaemon(url, { FIRELOCK_API_TOKENS_FILE: tokens });
  const stage = await startStageOf(start, context);
  const receiver = await startReceiver();
  // What is half typed is refused by the preview, and what is wrong by the save.
  const { page, faults } = await stage.open('/schedules', {
    token: tokenOf('admin'),
    expected: [400, 412, 422],
  });
  await make(page, receiver.url);
  await fireTwice(page, receiver);
  await pauseAndAskWhy(page, stage);
  await changeAndRevert(page, stage);
  await meetSomebodyElse(page, stage);
  await watchWhatRunsElsewhere(page, stage);
  await askWhyItWasMissed(page, stage);
  await lookWithoutRights(stage, () => writeFile(tokens, tokenLines('viewer')));
  expect(faults).toEqual([]);
  await receiver.close();
});

async function make(page: Page, url: string): Promise<void> {
  await page.getByRole('link', { name: 'New schedule' }).first().click();
  await page.getByRole('button', { name: /Every minute, call a URL/ }).click();
  await page.getByLabel('Id', { exact: true }).fill('');
  await page.getByLabel('URL', { exact: true }).fill(`${url}/beat`);
  await page.getByLabel('Cron expression').fill('0 2 31 2 *');
  await page.getByLabel('Payload').fill(`${BIG}]`);
  await page.getByLabel('Description').fill(HOSTILE);
  await page.getByRole('button', { name: 'Create' }).click();
  await page.locator('.field.faulty', { has: page.getByLabel('Payload') }).waitFor();
  await page.getByLabel('Payload').fill(BIG);
  await page.getByRole('button', { name: 'Create' }).click();
  await page.locator('.field.faulty', { has: page.getByLabel('Id', { exact: true }) }).waitFor();
  await page.locator('.field.faulty', { hasText: 'Cron expression' }).waitFor();
  await page.getByLabel('Id', { exact: true }).fill('journey');
  await page.getByLabel('Cron expression').fill('30 2 * * *');
  await page.getByLabel('Zone').fill('Europe/Berlin');
  const preview = page.getByRole('region', { name: 'When it fires' });
  await preview.getByText('At 02:30').waitFor();
  await preview
    .getByText(/for you/)
    .first()
    .waitFor();
  await page.getByRole('button', { name: 'Copy as curl' }).click();
  await page.getByText('Copied.').waitFor();
  const copied = await page.evaluate<string>('navigator.clipboard.readText()');
  expect(copied).toContain('$FIRELOCK_TOKEN');
  expect(copied).toContain('12345678901234567890.10');
  expect(copied).not.toContain(tokenOf('admin'));
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByRole('heading', { name: 'journey', level: 1 }).waitFor();
  await page.getByText("<script>document.title = 'taken over'</script>").waitFor();
  expect(await page.title()).toBe('journey · Schedule · firelock');
}

/** Once with the stored payload, and once with another. */
async function fireTwice(page: Page, receiver: Awaited<ReturnType<typeof startReceiver>>): Promise<void> {
  await page.getByRole('button', { name: 'Fire now' }).click();
  await page.getByRole('button', { name: 'Fire', exact: true }).click();
  await page.getByRole('heading', { name: 'It is fired' }).waitFor();
  await page.getByRole('dialog').getByText('Close').click();
  await page.getByRole('button', { name: 'Fire now' }).click();
  await page.getByRole('dialog').getByLabel('Payload').fill(' {"n": 1.0, "big": 12345678901234567890.10}');
  await page.getByRole('button', { name: 'Fire', exact: true }).click();
  await page.getByRole('heading', { name: 'It is fired' }).waitFor();
  await page.getByRole('dialog').getByText('Close').click();
  const [first, second] = await receiver.arrived(2);
  expect([first?.text, second?.text]).toEqual([
    expect.stringContaining(`"payload":${BIG}`),
    expect.stringContaining('{"n": 1.0, "big": 12345678901234567890.10}'),
  ]);
  await page.getByRole('region', { name: 'Last runs' }).getByText('succeeded').nth(1).waitFor();
}

async function pauseAndAskWhy(page: Page, { daemon }: Stage<Daemon>): Promise<void> {
  await page.getByRole('button', { name: 'Skip…' }).first().click();
  await page.getByLabel('Reason').fill('closed that day');
  await page.getByRole('button', { name: 'Skip it' }).click();
  await page.getByText('skipped: closed that day').waitFor();
  await page.getByRole('button', { name: 'Pause…' }).click();
  await page.getByLabel('Reason').fill('the target moves house');
  await page.getByLabel('Until').fill('2099-01-01T00:00:00');
  await page.getByText('1999 or more fires will not be made until then').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Pause' }).click();
  await page.getByText('Paused until 2099-01-01 00:00:00 CET').waitFor();
  await page.getByText('the target moves house').first().waitFor();
  // The day of the fire that was skipped: there and back by the mouse, and then by keyboard alone.
  await page.getByRole('button', { name: 'month', exact: true }).click();
  const days = page.getByRole('group', { name: /Occurrences, by day/ });
  const upcoming = await daemon.call('GET', '/api/v1/schedules/journey/upcoming', undefined, bearer('viewer'));
  const { fireAt } = (upcoming.body as { items: { fireAt: string }[] }).items[0] ?? { fireAt: '' };
  await page.goto(`${page.url().split('?')[0] ?? ''}?view=month&at=${fireAt}`);
  await page.getByRole('button', { name: 'Earlier' }).click();
  await page.getByText('No fire of this schedule is due in this month.').waitFor();
  await page.getByRole('button', { name: 'Later' }).click();
  await days
    .getByRole('button', { name: /1 paused/ })
    .first()
    .focus();
  await page.keyboard.press('Enter');
  const panel = page.getByRole('status').filter({ hasText: 'The schedule is paused' });
  await panel.getByText('the target moves house').waitFor();
  await page.getByRole('button', { name: 'Resume' }).click();
  await days.getByRole('button', { name: /1 skipped/ }).waitFor();
  await page.getByText('Somebody asked for it to be skipped.').waitFor();
  await page.getByText(/Fires next at/).waitFor();
}

async function changeAndRevert(page: Page, { daemon }: Stage<Daemon>): Promise<void> {
  await page.getByRole('link', { name: 'Edit' }).click();
  await page.getByLabel('Cron expression').fill('0 4 * * *');
  await page.getByRole('button', { name: 'Save' }).click();
  const versions = page.getByRole('region', { name: 'Versions' });
  await versions.getByText('cron', { exact: true }).first().waitFor();
  await versions.getByRole('button', { name: 'Revert…' }).last().click();
  await page.getByRole('dialog').getByText('− "0 4 * * *"').waitFor();
  await page.getByRole('button', { name: 'Revert', exact: true }).click();
  await page.getByText('It is again as it was in version 1.').waitFor();
  const { body } = await daemon.call('GET', '/api/v1/schedules/journey', undefined, bearer('admin'));
  expect(body).toMatchObject({ cron: '30 2 * * *', enabled: true });
}

/** Who changes it while the form is open. */
async function meetSomebodyElse(page: Page, { daemon }: Stage<Daemon>): Promise<void> {
  await page.getByRole('link', { name: 'Edit' }).click();
  await page.getByLabel('Cron expression').fill('0 5 * * *');
  const theirs = { labels: { team: 'billing' } };
  await daemon.call('PATCH', '/api/v1/schedules/journey', theirs, bearer('admin'));
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('heading', { name: 'Somebody has changed it meanwhile' }).waitFor();
  await page.getByText('+ "billing"').waitFor();
  await page.getByRole('button', { name: 'Put my changes on top' }).click();
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('button', { name: 'team:billing' }).waitFor();
  const { body } = await daemon.call('GET', '/api/v1/schedules/journey', undefined, bearer('admin'));
  expect(body).toMatchObject({ cron: '0 5 * * *', labels: { team: 'billing' } });
}

async function watchWhatRunsElsewhere(page: Page, { daemon, open }: Stage<Daemon>): Promise<void> {
  const observe = { until: '2099-01-01T00:00:00Z' };
  const definition = { everySeconds: 86_400, observe, target: { type: 'pull', queue: 'elsewhere' } };
  const { body } = await daemon.call('PUT', '/api/v1/schedules/elsewhere', definition, bearer('admin'));
  const { pingKey } = body as { pingKey: string };
  await daemon.call('GET', `/ping/${pingKey}/7`);
  await page.goto(`${daemon.url}/schedules/elsewhere`);
  const block = page.getByRole('region', { name: 'Observed' });
  await block.getByText(/Observed until 2099-01-01 .*, then sent/).waitFor();
  await block.getByText('expected, last 30 days').waitFor();
  const figures = await block.locator('dl.figures > div').allInnerTexts();
  expect(figures.map((text) => text.replace(/\s*\n\s*/, ': ')).slice(0, 5)).toEqual([
    ...['expected, last 30 days: 0', 'reported: 0', 'missed: 0', 'extra: 1', 'failed: 0'],
  ]);
  await page.getByRole('region', { name: 'Last runs' }).getByText('observed, extra').waitFor();
  await page.getByText(/Expected next at/).waitFor();
  await block.getByText(`${daemon.url}/ping/${pingKey}`).waitFor();
  await block.getByRole('button', { name: 'New address…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Replace it' }).click();
  await page.getByText('Its job has to report to the new address now.').waitFor();
  await block.getByText(`${daemon.url}/ping/${pingKey}`).waitFor({ state: 'detached' });
  await block.getByRole('button', { name: 'Copy the address' }).click();
  const copied = await page.evaluate<string>('navigator.clipboard.readText()');
  expect((await fetch(copied)).status).toBe(200);
  expect((await daemon.call('GET', `/ping/${pingKey}`)).status).toBe(404);
  await page.getByRole('link', { name: 'all of them' }).click();
  await page.getByText('observed, extra').nth(1).waitFor();
  const viewer = await open('/schedules/elsewhere', { token: tokenOf('viewer') });
  await viewer.page.getByText('Where its job reports is shown to operators and admins.').waitFor();
  expect([await viewer.page.getByText('/ping/').count(), viewer.faults]).toEqual([0, []]);
}

/** The one instance that there was had ended, and this one had not begun. */
async function askWhyItWasMissed(page: Page, { daemon, databaseUrl }: Stage<Daemon>): Promise<void> {
  const sql = sqlOfTest(databaseUrl);
  const asleep = { cron: '0 * * * *', catchUp: 'skip', target: { type: 'pull', queue: 'dreams' } };
  await daemon.call('PUT', '/api/v1/schedules/asleep', asleep, bearer('admin'));
  const ago = (hours: number) => sql`date_trunc('hour', clock_timestamp()) - make_interval(hours => ${hours})`;
  await sql`INSERT INTO instances (id, host, version, zone_data, ttl_seconds, started_at, heartbeat_at)
    VALUES (gen_random_uuid(), 'test', '0', '2026c', 1, ${ago(9)}, ${ago(8)})`;
  await sql`UPDATE schedule_versions SET at = ${ago(7)} WHERE schedule_id = 'asleep'`;
  await sql`UPDATE schedules SET next_occurrence_at = ${ago(5)}, next_fire_at = ${ago(5)} WHERE id = 'asleep'`;
  await until(async () => {
    const { body } = await daemon.call('GET', '/api/v1/schedules/asleep', undefined, bearer('admin'));
    return Date.parse((body as { nextFireAt: string }).nextFireAt) > Date.now() ? true : null;
  });
  const at = new Date(Date.now() - 2 * 3_600_000).toISOString();
  await page.goto(`${daemon.url}/schedules/asleep?view=day&at=${at}`);
  const cells = page.getByRole('group', { name: /Occurrences/ });
  await cells
    .getByRole('button', { name: /: missed/ })
    .first()
    .click();
  await page.getByText(/No instance was up from .*:00:00 \S+ to /).waitFor();
}

/** A viewer is offered nothing, an operator what is theirs; and whose rights end meanwhile is told so. */
async function lookWithoutRights({ daemon, open }: Stage<Daemon>, demote: () => Promise<void>): Promise<void> {
  const viewer = await open('/schedules/journey', { token: tokenOf('viewer') });
  await viewer.page.getByText(/Fires next at/).waitFor();
  await viewer.page.getByRole('region', { name: 'Versions' }).waitFor();
  expect(await viewer.page.getByRole('button', { name: /Fire|Pause|Delete|Skip|Revert|Backfill/ }).count()).toBe(0);
  const operator = await open('/schedules/journey', { token: tokenOf('operator'), expected: [403] });
  await operator.page.getByRole('button', { name: 'Backfill' }).waitFor();
  expect(await operator.page.getByRole('button', { name: /Pause|Delete|Revert/ }).count()).toBe(0);
  await operator.page.getByRole('button', { name: 'Fire now' }).click();
  await demote();
  daemon.signal('SIGHUP');
  await until(async () => {
    const { body } = await daemon.call('GET', '/api/v1/me', undefined, bearer('operator'));
    return (body as { role: string }).role === 'viewer' ? true : null;
  });
  await operator.page.getByRole('button', { name: 'Fire', exact: true }).click();
  await operator.page.getByText(/You may not do this: /).waitFor();
  expect([viewer.faults, operator.faults]).toEqual([[], []]);
}

function bearer(role: (typeof roles)[number]): Record<string, string> {
  return { authorization: `Bearer ${tokenOf(role)}` };
}

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
  const [year, at] = [Number(now?.match(/\d{4}/)?.[0]), new Date(`1 ${now?.split(',')[0] ?? ''} UTC`).getUTCMonth()];
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
