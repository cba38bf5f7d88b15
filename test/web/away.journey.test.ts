// @module-tag long
import { expect, it } from 'vitest';
import { startDaemon } from '../support/daemon.ts';
import { until } from '../support/until.ts';
import { startStage } from './browser.ts';

it('a hidden tab asks nothing, and one whose instance dies says so and comes back by itself', async (context) => {
  const { open, daemon, databaseUrl } = await startStage(context);
  await daemon.call('PUT', '/api/v1/schedules/nightly', {
    cron: '0 2 * * *',
    target: { type: 'http', url: 'http://127.0.0.1:9/' },
  });
  const { page, faults } = await open('/schedules');
  await page.clock.install();
  await page.reload();
  await page.getByText('nightly').waitFor();
  let asked = 0;
  page.on('request', () => (asked += 1));
  const see = (isSeen: boolean) =>
    page.evaluate(`Object.defineProperty(document, 'hidden', { configurable: true, value: ${String(!isSeen)} });
      document.dispatchEvent(new Event('visibilitychange'))`);

  await see(false);
  asked = 0;
  await page.clock.runFor('05:00');
  expect(asked).toBe(0);
  await see(true);
  await until(() => (asked > 0 ? true : null));

  daemon.signal('SIGKILL');
  await daemon.exited;
  const banner = page.getByText('This instance does not answer');
  await until(async () => {
    await page.clock.runFor('00:05');
    return (await banner.isVisible()) ? true : null;
  });
  expect(await page.getByText('nightly').isVisible()).toBe(true);
  await startDaemon({ DATABASE_URL: databaseUrl, PORT: String(daemon.port) });
  await until(async () => {
    await page.clock.runFor('00:30');
    return (await banner.isVisible()) ? null : true;
  });
  expect(faults.filter((fault) => !fault.startsWith('503'))).toEqual([]);
});
