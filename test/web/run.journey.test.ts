// @module-tag long
import { expect, it } from 'vitest';
import { newToken } from '../api/access/support.ts';
import { startReceiver } from '../support/receiver.ts';
import { until } from '../support/until.ts';
import { startStage } from './browser.ts';
import { append, claimAgain, claimedRun, complete } from '../support/run-logs.ts';
import { changeRun } from '../support/run-rows.ts';
import { sqlOfTest } from '../support/of-test.ts';

const BIG = '12345678901234567890.123456789';

it('the page of a run says what happened, what came before and after, and retries, cancels and fires it again', async (context) => {
  const [operator, viewer] = (['admin', 'viewer'] as const).map((role) => newToken(role, role));
  if (!operator || !viewer) throw new Error('no tokens');
  const { open, daemon } = await startStage(context, {
    FIRELOCK_API_TOKENS: [operator, viewer]
      .map(({ known }) => `${known.name}:${known.role}:${known.hash.toString('hex')}`)
      .join(','),
  });
  let status = 400;
  const bodies: string[] = [];
  const receiver = await startReceiver((arrival, response) => {
    bodies.push(arrival.text);
    response.statusCode = status;
    response.end('{"no":"<script>no</script>"}');
  });
  const call = async (method: string, path: string, body?: unknown) =>
    (await daemon.call(method, `/api/v1${path}`, body, operator.headers)).body as { id: string };
  const target = { type: 'http', url: receiver.url };
  await call('PUT', '/schedules/bill', { cron: '0 0 29 2 *', timezone: 'Europe/Berlin', target });
  await call('PUT', '/schedules/note', { after: { scheduleId: 'bill' }, target });
  const headers = { ...operator.headers, 'content-type': 'application/json' };
  const sent = await fetch(`${daemon.url}/api/v1/schedules/bill/fire`, {
    ...{ method: 'POST', headers, body: `{"payload":{"sum":${BIG}}}` },
  });
  const { id } = (await sent.json()) as { id: string };
  const statusOf = async (runId: string) =>
    ((await call('GET', `/runs/${runId}`)) as unknown as { status: string }).status;
  await until(async () => ((await statusOf(id)) === 'failed' ? true : null));

  const { page, faults } = await open(`/runs/${id}`, { token: operator.secret, expected: [409] });
  await page.getByText('Attempt 1: the target refused it', { exact: true }).waitFor();
  await page.getByText(`"sum": ${BIG}`).waitFor();
  await page.getByLabel('Body of the answer').getByText('<script>no</script>').waitFor();
  status = 200;
  await page.getByRole('button', { name: 'Retry…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Retry', exact: true }).click();
  await page.getByText('Attempt 2: the target took it', { exact: true }).waitFor();
  // Its end, the second one, is followed.
  const after = page.getByRole('list', { name: 'After it' });
  await after.getByRole('link', { name: 'note' }).waitFor();
  await after.getByText('succeeded').waitFor();
  await page.getByRole('button', { name: 'Fire again…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Fire again', exact: true }).click();
  await page.waitForURL((url) => !url.pathname.endsWith(id));
  await page.getByText('Attempt 1: the target took it', { exact: true }).waitFor();
  const sentBodies = bodies.filter((text) => text.includes('"scheduleId":"bill"'));
  expect(sentBodies.at(-1)).toContain(`"payload":{"sum":${BIG}}`);

  const first = await call('POST', '/runs', { target: { type: 'pull', queue: 'boxes' } });
  const second = await call('POST', '/runs', { target, dependsOn: [first.id] });
  await page.goto(`${daemon.url}/runs/${second.id}`);
  await page.getByText('Waits for the runs that it depends on', { exact: true }).waitFor();
  await page.getByRole('list', { name: 'Before it' }).getByRole('link').click();
  await page.getByText('Waits for a worker', { exact: true }).waitFor();
  await page.getByRole('list', { name: 'After it' }).getByText('waiting').waitFor();
  await page.getByRole('button', { name: 'Cancel…' }).click();
  // Meanwhile another user does the same: what ended another way is refused, and said.
  await call('POST', '/queues/boxes/claim', { workerId: 'w' });
  await call('POST', `/runs/${first.id}/complete`, { status: 'succeeded', workerId: 'w' });
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel', exact: true }).click();
  await page.getByRole('alert').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Cancel…' }).waitFor({ state: 'detached' });

  const seen = await open(`/runs/${id}`, { token: viewer.secret });
  await seen.page.getByText('Attempt 2: the target took it', { exact: true }).waitFor();
  expect(await seen.page.getByRole('button', { name: /…$/ }).count()).toBe(0);
  await receiver.close();
  expect([...faults, ...seen.faults]).toEqual([]);
});

it('the page of a run shows what the run prints, as it comes, of each attempt, and obeys none of it', async (context) => {
  const { open, daemon, databaseUrl } = await startStage(context);
  const run = await claimedRun(daemon);
  const { page, faults } = await open(`/runs/${run.id}`);
  const log = page.getByRole('log');
  await page.getByText('It may print more.').waitFor();
  await append(daemon, run, '<img src=x onerror=alert(1)>\n\u001b[31mred \u001b]0;title\u0007ö');
  await log.getByText('<img src=x onerror=alert(1)>').waitFor();
  await log.locator('.log-fg-1', { hasText: 'red ö' }).waitFor();
  expect(await log.locator('img').count()).toBe(0);
  await append(daemon, run, 'after', { offset: 10_000 });
  await log.getByText(/… 9,9\d\d bytes were left out here …/).waitFor();
  await log.getByText('after').waitFor();

  await changeRun(sqlOfTest(databaseUrl), run.id, { status: 'pending', claimed_by: null });
  const again = await claimAgain(daemon, run.id);
  await append(daemon, again, 'of the second attempt');
  await page.getByText('of the second attempt').waitFor();
  await complete(daemon, again);
  await page.getByText('It may print more.').waitFor({ state: 'detached' });
  await page.getByLabel('Attempt').first().selectOption('1');
  await page.getByRole('log', { name: 'Log of attempt 1' }).getByText('after').waitFor();
  expect(faults).toEqual([]);
});
