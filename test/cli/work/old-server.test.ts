// @module-tag long
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { json, text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { workHere } from './workers.ts';

const NO_ROUTE = { status: 404, detail: 'there is nothing at this path' };

const MIB = Buffer.alloc(1024 * 1024, ' ');

interface Called {
  path: string;
  body: unknown;
}

/** A server of these answers, by the ends of paths; the first claims lease so many runs each, all other calls answer 200. */
async function serverOf(
  leases: number[],
  answers: Record<string, { status: number; detail?: string }>,
  isEndless = false,
) {
  const calls: Called[] = [];
  let made = 0;
  const server = createServer((request, response) => {
    void (async () => {
      const path = request.url ?? '';
      const isLog = path.includes('/log');
      const body: unknown = isLog ? await text(request) : await json(request);
      calls.push({ path, body });
      const [, end] = Object.entries(answers).find(([suffix]) => path.includes(suffix)) ?? [];
      const isClaim = path.endsWith('/claim');
      if (isClaim && isEndless) {
        isEndless = false;
        await pipeline(Readable.from(Array(65).fill(MIB)), response).catch(() => undefined);
        return;
      }
      const count = isClaim ? (leases.shift() ?? 0) : 0;
      if (isClaim && count === 0) await new Promise((resolve) => setTimeout(resolve, 50));
      const items = Array.from({ length: count }, () => ({
        ...{ id: `run-${(made += 1)}`, attempts: 1, name: null, scheduleId: null, scheduledFor: 't' },
        ...{ payloadFrom: 'request', payload: null },
      }));
      response.writeHead(end?.status ?? 200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(end ?? (isClaim ? { items } : {})));
    })();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close().closeAllConnections();
  });
  const of = (part: string) => calls.filter(({ path }) => path.includes(part));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, of };
}

test('a server that knows neither logs nor releases nor failures for now is worked for all the same', async () => {
  const server = await serverOf([2], {
    '/log': NO_ROUTE,
    '/release': NO_ROUTE,
    'run-2/complete': { status: 400, detail: '/retry is not known' },
  });
  const script = 'echo printed; test $RUN_ID = run-1 || exit 75';
  const worker = workHere(server, ['q', '--exec', script, '--shell', '--concurrency', '1']);
  await worker.said(/^run-1: succeeded$/);
  await worker.said(/^run-2: failed: exit code 75; left to its lease$/);
  expect(server.of('/log').length).toBe(2);
  expect(server.of('run-1/complete')).toMatchObject([
    { body: { status: 'succeeded', attempt: 1, result: 'printed\n' } },
  ]);
});

test('an answer that is too long is not read to its end', async () => {
  const { err } = await workHere(await serverOf([], {}, true), ['q']).exited;
  expect(err).toMatch(/an answer of \S+ has more than 64 MiB/);
});

test('a log that is refused is left alone, and its run is reported', async () => {
  const server = await serverOf([1], { '/log': { status: 409, detail: 'another attempt' } });
  const worker = workHere(server, ['q', '--exec', 'echo a; sleep 1; echo b', '--shell']);
  await worker.said(/^run-1: succeeded$/);
  expect(server.of('/log')).toEqual([{ path: expect.stringContaining('offset=0') as string, body: 'a\n' }]);
});

test('what was claimed and cannot begin is given back', async () => {
  const server = await serverOf([3], {});
  const worker = workHere(server, ['q', '--exec', 'sleep 1', '--concurrency', '1']);
  await worker.said(/^run-1: succeeded$/);
  expect(server.of('/release').map(({ path }) => path)).toEqual([
    '/api/v1/runs/run-2/release',
    '/api/v1/runs/run-3/release',
  ]);
});

test('a command prints into the log of its run while it goes, byte for byte', async () => {
  const server = await serverOf([1], {});
  const worker = workHere(server, ['q', '--name', 'w', '--exec', 'echo one; sleep 1; printf two', '--shell']);
  await worker.said(/^run-1: succeeded$/);
  expect(server.of('/log')).toEqual([
    { path: '/api/v1/runs/run-1/log?attempt=1&offset=0&workerId=w', body: 'one\n' },
    { path: '/api/v1/runs/run-1/log?attempt=1&offset=4&workerId=w', body: 'two' },
  ]);
});
