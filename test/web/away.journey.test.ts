// @module-tag long
import { expect, it, onTestFinished } from 'vitest';
import { readyDaemon } from '../support/daemon.ts';
import { daemonHere } from '../support/daemon-here.ts';
import { type PostgresProxy, startPostgresProxy } from '../support/postgres/postgres-proxy.ts';
import { until } from '../support/until.ts';
import { startStageOf } from './browser.ts';

it('a hidden tab asks nothing, and one whose instance dies says so and comes back by itself', async (context) => {
  const { open, daemon, databaseUrl } = await startStageOf(readyDaemon, context);
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
  await readyDaemon(databaseUrl, { PORT: String(daemon.port) });
  await until(async () => {
    await page.clock.runFor('00:30');
    return (await banner.isVisible()) ? null : true;
  });
  expect(faults).toEqual([]);
});

it('a page whose database is away says so, keeps what it had, and goes on by itself when it is back', async (context) => {
  const ways: PostgresProxy[] = [];
  const { open, daemon } = await startStageOf(async (url) => {
    const way = await startPostgresProxy(url);
    onTestFinished(() => way.close());
    ways.push(way);
    return daemonHere(way.url);
  }, context);
  const target = { type: 'http', url: 'http://127.0.0.1:9/' };
  const put = (id: string) => daemon.call('PUT', `/api/v1/schedules/${id}`, { cron: '0 2 29 2 *', target });
  await put('nightly');
  const { page, faults } = await open('/schedules');
  await page.clock.install();
  await page.reload();
  await page.getByText('nightly').waitFor();
  const banner = page.getByText('The database is out of reach');
  const isSeen = (wanted: boolean) =>
    until(async () => {
      await page.clock.runFor('00:05');
      return (await banner.isVisible()) === wanted ? true : null;
    });

  await ways[0]?.interrupt('refuse');
  await isSeen(true);
  expect(await page.getByText('nightly').isVisible()).toBe(true);
  await ways[0]?.restore();
  await until(async () => ((await put('weekly')).status === 201 ? true : null));
  await isSeen(false);
  await page.getByText('weekly').waitFor();
  expect(faults).toEqual([]);
});
