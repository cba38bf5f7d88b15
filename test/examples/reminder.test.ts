// @module-tag long
import { expect, it } from 'vitest';
import { listRuns, runExample, runInShell, runOnce, sharedDaemon } from './program.ts';
import { receiverOfTest } from '../support/of-test.ts';

const daemon = sharedDaemon();
const TEXT = 'Invoice "4711" of C:\\new\\é is due';

it('a reminder that is requested twice is one run, and is handed off once', async () => {
  const receiver = await receiverOfTest();
  const when = new Date().toISOString();
  const parameters = [when, 'invoice-4711', TEXT, `${receiver.url}/remind`];
  const reminder = runExample('reminder.sh', parameters, { FIRELOCK_URL: daemon.url });
  expect(await reminder.exited).toBe(0);
  const said = /^first call: 201, run (\S+)\nsecond call: 200, run (\S+)\n/.exec(reminder.lines.join('\n'));
  expect(said?.[1]).toBe(said?.[2]);

  const run = await runOnce(daemon, said?.[1] ?? '', ({ status }) => status === 'succeeded');
  expect(run).toMatchObject({ key: 'invoice-4711', scheduledFor: when, attempts: 1 });
  expect(await listRuns(daemon, '&key=invoice-4711')).toHaveLength(1);
  expect(receiver.arrivals.map(({ path, body }) => [path, body.runId, body.payload])).toEqual([
    ['/remind', run.id, { text: TEXT }],
  ]);
});

it('a reminder waits for its moment, is refused with another text, and is cancelled as it says', async () => {
  const ask = (text: string) =>
    runExample('reminder.sh', ['2099-01-01T09:00:00+01:00', 'new-year', text, 'http://127.0.0.1:9/'], {
      FIRELOCK_URL: daemon.url,
    });
  const first = ask('Happy new year');
  expect(await first.exited).toBe(0);
  const another = ask('Happy old year');
  expect(await another.exited).toBe(1);
  expect(another.lines.join('\n')).toMatch(/was used with another body.*\n422/);

  const runs = await listRuns(daemon, '&key=new-year');
  expect(runs).toMatchObject([{ status: 'pending', nextAttemptAt: '2099-01-01T08:00:00.000Z' }]);
  const cancel = (await first.said(/^not after all:/)).replace('not after all:', '');
  expect(await runInShell(cancel).exited).toBe(0);
  expect(await listRuns(daemon, '&key=new-year')).toMatchObject([{ status: 'cancelled' }]);
});
