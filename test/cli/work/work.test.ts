// @module-tag long
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type AnsweredRun, mortalDaemon, enqueue, runById, runOnce, sharedDaemon } from '../../examples/program.ts';
import { readyDaemon } from '../../support/daemon.ts';
import { until } from '../../support/until.ts';
import { startWorker, workHere } from './workers.ts';

const daemon = sharedDaemon();

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'firelock-of-test-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

const hasEnded = ({ status }: AnsweredRun) => ['succeeded', 'failed', 'cancelled'].includes(status);
const endOf = (id: string) => runOnce(daemon, id, hasEnded);
const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};
/** The processes that a command has written down, once there are so many. */
const pidsIn = (file: string, count: number) =>
  until(() => {
    const lines = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
    return lines.length >= count ? lines.map(Number) : null;
  });
const allGone = (pids: readonly number[]) => until(() => !pids.some(isAlive) || null);

/** Notes its own process and one that it starts, both of which ignore TERM, and stays. */
const STUBBORN = (file: string) =>
  `trap "" TERM; echo $$ >> ${file}; sh -c 'trap "" TERM; echo $$ >> ${file}; while :; do sleep 1; done' & while :; do sleep 1; done`;

describe('a command', () => {
  test('gets the payload byte for byte and its run by name, and what it prints is the result, in order', async () => {
    const script =
      'cat; echo " $RUN_ID $ATTEMPT [$SCHEDULE_ID$NAME$FIRELOCK_TOKEN]"; echo two >/dev/stderr; echo three; printf "\\377end"';
    workHere(daemon, ['bytes', '--exec', script, '--shell']);
    const body = '{"target":{"type":"pull","queue":"bytes"},"payload":{ "n": 12345678901234567890.10, "t":"\\u00e9" }}';
    const { body: made } = await daemon.call('POST', '/api/v1/runs', body);
    const { id } = made as AnsweredRun;
    expect(await endOf(id)).toMatchObject({
      status: 'succeeded',
      result: { body: `{ "n": 12345678901234567890.10, "t":"\\u00e9" } ${id} 1 []\ntwo\nthree\n\ufffdend` },
    });
  });

  test('ends its run by its exit code or signal: 75 and --retry-exit mean later', async () => {
    const folder = await newFolder();
    writeFileSync(`${folder}/not-executable`, 'echo');
    workHere(daemon, ['codes', '--exec', `sh -c 'eval "$(cat | tr -d \\")"'`, '--retry-exit', '9']);
    const ended = async (command: string) => endOf(await enqueue(daemon, 'codes', command));
    const failed = (message: string) => ({
      status: 'failed',
      failures: 0,
      error: { kind: 'reported', message },
    });
    expect(await ended('exit 3')).toMatchObject(failed('exit code 3'));
    expect(await ended('kill -9 $$')).toMatchObject(failed('ended by SIGKILL'));
    expect(await ended('exec /nowhere/at/all')).toMatchObject(failed('exit code 127: there is no such command'));
    for (const code of [75, 9]) {
      const id = await enqueue(daemon, 'codes', `test $ATTEMPT = 2 || exit ${code}`);
      expect(await endOf(id)).toMatchObject({ status: 'succeeded', attempts: 2, failures: 1 });
    }
    for (const [word, message] of [
      ['no-such-command-here', 'exit code 127: there is no such command'],
      [`${folder}/not-executable`, 'exit code 126: the command cannot be executed'],
    ] as const) {
      workHere(daemon, [`exec-${message.length}`, '--exec', word]);
      const end = await endOf(await enqueue(daemon, `exec-${message.length}`, null));
      expect(end).toMatchObject({
        ...failed(message),
        result: { body: expect.stringContaining(word) as string },
      });
    }
  });

  test('that takes too long is ended, and has failed for now', async () => {
    workHere(daemon, ['slow', '--exec', 'sleep 1000', '--timeout', '1', '--concurrency', '1']);
    const id = await enqueue(daemon, 'slow', null);
    const run = await runOnce(daemon, id, ({ failures }) => failures === 1);
    expect(run.error).toEqual({ kind: 'reported', message: 'not done after 1 s: ended by SIGTERM' });
  });

  test('may leave something in the background, which goes on, and whose output nobody reads', async () => {
    const folder = await newFolder();
    const script = `(while [ ! -e ${folder}/go ]; do sleep 0.1; done; echo late; echo later; touch ${folder}/done) & echo early`;
    const worker = workHere(daemon, ['forks', '--exec', script, '--shell']);
    const run = await endOf(await enqueue(daemon, 'forks', null));
    expect(run).toMatchObject({ status: 'succeeded', result: { body: 'early\n' } });
    worker.stop();
    expect((await worker.exited).code).toBe(0);
    writeFileSync(`${folder}/go`, '');
    await until(() => existsSync(`${folder}/done`) || null);
  });

  test('may print as much as it likes: the worker stays small, and the end of it is the result', async () => {
    const worker = startWorker(daemon, [
      'much',
      '--exec',
      `head -c 60000000 /dev/zero | tr '\\0' x; echo; echo last`,
      '--shell',
    ]);
    const run = await endOf(await enqueue(daemon, 'much', null));
    expect(run.result?.body).toMatch(/^x{4090}\nlast\n$/);
    const [, peak] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${worker.pid}/status`, 'utf8')) ?? [];
    expect(Number(peak)).toBeLessThan(400_000);
  });

  test('of a cancelled run ends with all that it has started, also what ignores TERM', async () => {
    const folder = await newFolder();
    const worker = workHere(daemon, [
      'cancelled',
      '--exec',
      STUBBORN(`${folder}/pids`),
      '--shell',
      '--lease',
      '5',
      '--grace',
      '1',
    ]);
    const id = await enqueue(daemon, 'cancelled', null);
    const pids = await pidsIn(`${folder}/pids`, 2);
    await daemon.call('POST', `/api/v1/runs/${id}/cancel`);
    await worker.said(new RegExp(`^${id}: ended: the run has ended as cancelled`));
    await allGone(pids);
    expect((await runById(daemon, id)).status).toBe('cancelled');
  });
});

describe('a worker', () => {
  test('that is killed takes its commands with it, also those that ignore TERM', async () => {
    const folder = await newFolder();
    const worker = startWorker(daemon, ['killed', '--exec', STUBBORN(`${folder}/pids`), '--shell', '--grace', '1']);
    await enqueue(daemon, 'killed', null);
    const pids = await pidsIn(`${folder}/pids`, 2);
    await worker.kill();
    await allGone(pids);
  });

  test('that has to stop lets its commands end for a while, ends the others, and reports these as failed for now', async () => {
    const folder = await newFolder();
    const script = `case $(cat) in *quick*) echo $$ >> ${folder}/pids; sleep 1; echo done;; *) ${STUBBORN(`${folder}/pids`)};; esac`;
    const worker = startWorker(daemon, ['stopped', '--exec', script, '--shell', '--grace', '3']);
    const quick = await enqueue(daemon, 'stopped', 'quick');
    const stubborn = await enqueue(daemon, 'stopped', 'stubborn');
    const pids = await pidsIn(`${folder}/pids`, 3);
    worker.signal('SIGTERM');
    const later = await enqueue(daemon, 'stopped', 'quick');
    expect(await worker.exited).toBe(0);
    await allGone(pids);
    expect(await runById(daemon, quick)).toMatchObject({ status: 'succeeded', result: { body: 'done\n' } });
    expect(await runById(daemon, stubborn)).toMatchObject({
      ...{ status: 'pending', attempts: 1, failures: 1 },
      error: { message: 'the worker was stopped: ended by SIGKILL' },
    });
    expect((await runById(daemon, later)).failures).toBe(0);
  });

  test('outlives the daemon, and reports to the next one what it did meanwhile', async () => {
    const { daemon: first, databaseUrl } = await mortalDaemon();
    const folder = await newFolder();
    const script = `echo $$ > ${folder}/pids; while [ ! -e ${folder}/go ]; do sleep 0.1; done; echo kept`;
    const worker = workHere(first, ['outage', '--exec', script, '--shell'], '');
    const id = await enqueue(first, 'outage', null);
    await pidsIn(`${folder}/pids`, 1);
    first.signal('SIGKILL');
    writeFileSync(`${folder}/go`, '');
    await worker.said(/^outage: cannot reach .*; again in /);
    const next = await readyDaemon(databaseUrl, { PORT: String(first.port) });
    const done = await runOnce(next, id, hasEnded);
    expect(done).toMatchObject({ status: 'succeeded', attempts: 1, result: { body: 'kept\n' } });
  });

  test('whose lease ran out ends its command, although the next worker has the same name', async () => {
    const folder = await newFolder();
    const script = `echo $$ >> ${folder}/pids; test $ATTEMPT = 2 || sleep 1000`;
    const args = [
      'namesakes',
      '--exec',
      script,
      '--shell',
      '--lease',
      '5',
      '--name',
      'twin',
      '--grace',
      '1',
      '--concurrency',
      '1',
    ];
    const one = startWorker(daemon, args);
    const id = await enqueue(daemon, 'namesakes', null);
    const pids = await pidsIn(`${folder}/pids`, 1);
    one.signal('SIGSTOP');
    startWorker(daemon, args);
    expect(await endOf(id)).toMatchObject({ status: 'succeeded', attempts: 2, workerId: 'twin' });
    one.signal('SIGCONT');
    await one.said(new RegExp(`^${id}: ended: `));
    await allGone(pids);
    expect(await runById(daemon, id)).toMatchObject({ status: 'succeeded', attempts: 2 });
  });

  test('says at once that it may not claim, and works for several queues by turns', async () => {
    const { code, err } = await workHere(daemon, ['any'], '').exited;
    expect([code, err]).toEqual([5, expect.stringContaining('the server requires a token')]);
    workHere(daemon, ['one', 'two', '--exec', 'cat', '--concurrency', '1']);
    const ids = await Promise.all(['one', 'two', 'two', 'one'].map((queue, n) => enqueue(daemon, queue, n)));
    const ends = await Promise.all(ids.map(endOf));
    expect(ends.map(({ result }) => result?.body)).toEqual(['0', '1', '2', '3']);
  });
});
