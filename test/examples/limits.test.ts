// @module-tag long
import type { ServerResponse } from 'node:http';
import { expect, it } from 'vitest';
import { runPage } from '../docs/shell.ts';
import { receiverOfTest } from '../support/of-test.ts';
import { until } from '../support/until.ts';
import { listRuns, sharedDaemon, tokenOf } from './program.ts';

const daemon = sharedDaemon();

it('the page about limits is right: two loads at once, and the third when one has ended', async () => {
  const open = new Map<string, ServerResponse>();
  const receiver = await receiverOfTest(({ path }, response) => void open.set(path, response));
  await runPage('docs/limits.md', { url: daemon.url, targetUrl: receiver.url, token: tokenOf('admin') });

  const warehouse = async () => (await daemon.call('GET', '/api/v1/limits/warehouse')).body;
  await receiver.arrived(2);
  expect(await warehouse()).toMatchObject({ maxRunning: 2, running: 2, waiting: 1 });
  const [first = ''] = open.keys();
  open.get(first)?.end('{}');
  open.delete(first);
  await receiver.arrived(3);
  expect(await warehouse()).toMatchObject({ running: 2, waiting: 0 });
  for (const response of open.values()) response.end('{}');
  await until(async () => {
    const runs = await listRuns(daemon, '&trigger=api');
    return runs.length === 3 && runs.every(({ status }) => status === 'succeeded') ? true : null;
  });
});
