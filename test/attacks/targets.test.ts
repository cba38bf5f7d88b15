// @module-tag attack
// @module-tag long
import { type Server, type Socket, createServer } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { listenOnLoopback } from '../support/loopback.ts';
import { type Daemon, readyDaemon } from '../support/daemon.ts';
import type { TestDatabase } from '../support/postgres/cluster.ts';
import { createMigratedDatabase } from '../support/postgres/migrated-database.ts';
import { QUICK_START } from '../support/runner/quick-start.ts';
import { startReceiver } from '../support/receiver.ts';
import { until } from '../support/until.ts';

/** Answers each connection; the rest is the socket's end. */
type Answer = (socket: Socket) => void;

const say =
  (bytes: string | Buffer): Answer =>
  (socket) =>
    socket.end(bytes);

/** Goes on and on, as fast as it is taken, until the other side has enough. */
const forEver =
  (head: string, more: string): Answer =>
  (socket) => {
    const go = () => {
      while (socket.writable && socket.write(more));
    };
    socket.write(head);
    socket.on('drain', go);
    go();
  };

const drip =
  (head: string, more: string): Answer =>
  (socket) => {
    socket.write(head);
    const drops = setInterval(() => socket.write(more), 100);
    socket.on('close', () => clearInterval(drops));
  };

const OK = 'HTTP/1.1 200 OK\r\n';
const chunk = (bytes: number) => `${bytes.toString(16)}\r\n${'x'.repeat(bytes)}\r\n`;

/** How its run is to end after one attempt. */
interface End {
  status?: string;
  error?: { kind: string; statusCode?: number };
}

/** What each answers. */
const TARGETS: [name: string, answer: Answer, end: End][] = [
  [
    'an answer that never ends',
    forEver(`${OK}Transfer-Encoding: chunked\r\n\r\n`, chunk(65_536)),
    { status: 'succeeded' },
  ],
  // The status was read, and judges.
  ['headers that never end', forEver(OK, `X-A: ${'x'.repeat(60_000)}\r\n`), { status: 'succeeded' }],
  ['a hundred thousand headers', say(`${OK}${'a:b\r\n'.repeat(100_000)}\r\n`), { status: 'succeeded' }],
  ['provisional answers without end', forEver('', 'HTTP/1.1 103 Early Hints\r\n\r\n'), { status: 'failed' }],
  ['a body byte by byte', drip(`${OK}Content-Length: 100000\r\n\r\n`, 'x'), { error: { kind: 'timeout' } }],
  ['a head byte by byte', drip(`${OK}X-A: `, 'x'), { error: { kind: 'timeout' } }],
  ['silence', () => undefined, { error: { kind: 'timeout' } }],
  ['no HTTP', say('\u0000\u0001SSH-2.0-OpenSSH\r\n'), { error: { kind: 'network' } }],
  ['two lengths', say(`${OK}Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx`), { status: 'succeeded' }],
  ['less than its length', say(`${OK}Content-Length: 100\r\n\r\nxx`), { status: 'failed' }],
  [
    'a redirect to the metadata service',
    say('HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n'),
    { error: { kind: 'http', statusCode: 302 } },
  ],
  [
    'an answer that asks for another protocol',
    say('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'),
    { status: 'failed' },
  ],
  [
    'a packed bomb',
    say(
      Buffer.concat([
        Buffer.from(`${OK}Content-Encoding: gzip\r\nConnection: close\r\n\r\n`),
        gzipSync(Buffer.alloc(30_000_000)),
      ]),
    ),
    { status: 'succeeded' },
  ],
  [
    'NUL and broken text',
    say(Buffer.from(`${OK}Connection: close\r\n\r\n\u0000\ud800{"executionId":"a\\u0000b"}`)),
    { status: 'succeeded' },
  ],
  ['JSON that is very deep', say(`${OK}Connection: close\r\n\r\n${'['.repeat(60_000)}`), { status: 'succeeded' }],
  [
    'an execution without end',
    say(`${OK}Connection: close\r\n\r\n{"executionId":"${'x'.repeat(50_000)}"}`),
    { status: 'succeeded' },
  ],
  [
    'an execution with the name of a prototype',
    say(`${OK}Connection: close\r\n\r\n{"__proto__":{"executionId":"x"},"executionId":{"toString":1}}`),
    { status: 'succeeded' },
  ],
  [
    'a Retry-After of a thousand years',
    say('HTTP/1.1 503 No\r\nRetry-After: 31536000000\r\nContent-Length: 0\r\n\r\n'),
    { error: { kind: 'http', statusCode: 503 } },
  ],
];

interface Run {
  id: string;
  status: string;
  error: object | null;
  executionId: string | null;
}

let database: TestDatabase;
const servers: Server[] = [];
beforeAll(async () => {
  database = await createMigratedDatabase();
});
afterAll(async () => {
  for (const server of servers) server.close();
  await database.drop();
});

async function serve(answer: Answer): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => answer(socket));
    onTestFinished(() => {
      socket.destroy();
    });
  });
  servers.push(server);
  return `http://127.0.0.1:${await listenOnLoopback(server)}/`;
}

async function ask(daemon: Daemon, url: string, timing: { timeoutSeconds?: number } = {}): Promise<Run> {
  const { status, body } = await daemon.call('POST', '/api/v1/runs', {
    target: { type: 'http', url },
    retry: { maxAttempts: 1 },
    ...timing,
  });
  expect(status).toBe(201);
  return body as Run;
}

async function endOf(daemon: Daemon, { id }: Run): Promise<Run> {
  return until(async () => {
    const run = (await daemon.call('GET', `/api/v1/runs/${id}`)).body as Run;
    return ['pending', 'running'].includes(run.status) ? null : run;
  });
}

describe('a hostile target', () => {
  test('ends its own run, and delays no other', async () => {
    const daemon = await readyDaemon(database.url);
    const receiver = await startReceiver();
    onTestFinished(() => receiver.close());
    const asked = [];
    for (const [name, answer, end] of TARGETS) {
      // With one second for all, a slow machine would say of the others what it says of these.
      const isLate = end.status === 'failed' || end.error?.kind === 'timeout';
      const run = await ask(daemon, await serve(answer), isLate ? { timeoutSeconds: 1 } : {});
      asked.push({ name, end, run });
    }
    const honest = await ask(daemon, receiver.url);
    for (const { name, end, run } of asked)
      expect([name, await endOf(daemon, run)]).toEqual([name, expect.objectContaining(partly(end))]);
    expect(await endOf(daemon, honest)).toMatchObject({ status: 'succeeded' });
    expect((await daemon.call('GET', '/readyz')).status).toBe(200);
    expect(daemon.log().filter(({ level }) => level >= 50)).toEqual([]);
    daemon.signal('SIGTERM');
    expect(await daemon.exited).toBe(0);
  });

  test('whose name moves to the metadata service after its first call is not called there', async () => {
    const preload = pathToFileURL(join(import.meta.dirname, 'rebinding-preload.ts')).href;
    const daemon = await readyDaemon(database.url, {
      NODE_OPTIONS: `${QUICK_START.NODE_OPTIONS} --import=${preload}`,
    });
    const receiver = await startReceiver((_, response) => response.setHeader('Connection', 'close').end('{}'));
    onTestFinished(() => receiver.close());
    const url = `http://rebinding.example:${new URL(receiver.url).port}/`;
    expect(await endOf(daemon, await ask(daemon, url))).toMatchObject({ status: 'succeeded' });
    for (let again = 0; again < 2; again += 1)
      expect(await endOf(daemon, await ask(daemon, url))).toMatchObject({ error: { kind: 'blocked' } });
    expect(receiver.arrivals).toHaveLength(1);
    const lines = daemon.log().filter(({ msg }) => msg.startsWith('a target was not called'));
    expect(lines.map(({ address }) => address)).toEqual(['169.254.169.254', '169.254.169.254']);
  });
});

function partly(end: End): object {
  const { error, ...rest } = end;
  return error === undefined ? rest : { error: expect.objectContaining(error) as unknown };
}
