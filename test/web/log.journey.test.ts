// @module-tag long
import { expect, it } from 'vitest';
import { append, claimAgain, claimedRun, complete } from '../support/run-logs.ts';
import { changeRun } from '../support/run-rows.ts';
import { sqlOfTest } from '../support/of-test.ts';
import { startStage } from './browser.ts';

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
