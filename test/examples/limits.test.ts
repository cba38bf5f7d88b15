import { readFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { until } from '../support/until.ts';
import { listRuns, receiverForExamples, runInShell, sharedDaemon } from './program.ts';

const daemon = sharedDaemon();
const page = join(import.meta.dirname, '..', '..', 'docs', 'limits.md');

it('the page about limits is right: two loads at once, and the third when one has ended', async () => {
  const open = new Map<string, ServerResponse>();
  const receiver = await receiverForExamples(({ path }, response) => void open.set(path, response));
  const [, commands = ''] = /```sh\n(.*?)```/s.exec(await readFile(page, 'utf8')) ?? [];
  const here = commands
    .replaceAll('http://127.0.0.1:8080', daemon.url)
    .replaceAll('http://127.0.0.1:9000', receiver.url)
    // What the guide tells those who have a token.
    .replaceAll(/^curl /gm, 'curl -H "authorization: Bearer $FIRELOCK_TOKEN" ');
  const typed = runInShell(here, 'admin');
  expect(await typed.exited, typed.lines.join('\n')).toBe(0);

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
