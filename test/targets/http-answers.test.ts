import { gzipSync } from 'node:zlib';
import type { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import type { OutcomeRules } from '../../src/core/schedules/schedule.ts';
import { targetAt } from '../support/targets.ts';
import { answerWith, attemptOf, httpTarget, never, receiveTcp } from './receivers.ts';

const REQUIRE_OK: OutcomeRules = {
  succeed: [],
  retry: [],
  fail: [],
  require: { contains: 'caf\u00e9' },
  otherwise: 'retry',
};

function deliverTo(url: string, outcome: OutcomeRules | null = null, http = httpTarget()) {
  return http.deliver({ ...targetAt(url), outcome }, attemptOf(), never);
}

function close(socket: Socket) {
  socket.end();
}

describe('an answer that a strict parser refuses is read all the same', () => {
  test.each([
    ['after a 100', 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'],
    [
      'after a 100 with headers, and a 103',
      'HTTP/1.1 100 C\r\nA: b\r\n\r\nHTTP/1.1 103 E\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok',
    ],
    ['with a folded header', 'HTTP/1.1 200 OK\r\nX: a\r\n b\r\ncontent-length: 2\r\n\r\nok'],
    ['with bare line ends', 'HTTP/1.1 200 OK\nX: a\ncontent-length: 2\n\nok'],
    ['with a length twice', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\nContent-Length: 2\r\n\r\nok'],
    ['with a blank before a colon', 'HTTP/1.1 200 OK\r\nX : a\r\nContent-Length : 2\r\n\r\nok'],
    ['with control characters', 'HTTP/1.1 200 OK\r\nX: a\x01\0b\r\ncontent-length: 2\r\n\r\nok'],
    ['with a header of 60 KiB', `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(60 * 1024)}\r\ncontent-length: 2\r\n\r\nok`],
    [
      'with chunks beside a length',
      'HTTP/1.1 200 OK\r\ncontent-length: 9\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
    ],
    ['after blank lines', '\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'],
  ])('%s', async (_, answer) => {
    const url = await answerWith(answer);
    expect(await deliverTo(url)).toEqual({
      kind: 'accepted',
      statusCode: 200,
      body: 'ok',
      executionId: null,
    });
  });

  test('however it is cut into parts', async () => {
    const answer = 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\nLocation: /x\n y\ncontent-length: 2\n\nok';
    const url = await receiveTcp((socket) => {
      socket.setNoDelay(true);
      socket.once('data', () => void drip(socket, answer));
    });
    expect(await deliverTo(url)).toEqual({
      kind: 'accepted',
      statusCode: 201,
      body: 'ok',
      executionId: '/x y',
    });
  });

  test('and the connection is kept', async () => {
    let connections = 0;
    const url = await receiveTcp((socket) => {
      connections += 1;
      socket.on('data', () => socket.write('HTTP/1.1 100 C\r\n\r\nHTTP/1.1 200 OK\nX: a\ncontent-length: 2\n\nok'));
    });
    const http = httpTarget();
    for (let time = 0; time < 3; time += 1)
      expect(await deliverTo(url, null, http)).toMatchObject({ kind: 'accepted', body: 'ok' });
    expect(connections).toBe(1);
  });
});

describe('where more than the status line cannot be followed, the status judges', () => {
  test.each([
    ['different lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok', 'accepted', 200],
    ['a length that is none', 'HTTP/1.1 404 No\r\ncontent-length: many\r\n\r\nok', 'rejected', 404],
    ['a chunk without a size', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nok', 'accepted', 200],
    ['headers above 64 KiB', `HTTP/1.1 503 Busy\r\nX: ${'x'.repeat(130 * 1024)}`, 'transient', 503],
    ['a status above 599', 'HTTP/1.1 999 Denied\r\ncontent-length: 0\r\n\r\n', 'rejected', 999],
    ['a status of four digits', 'HTTP/1.1 1200 X\r\ncontent-length: 0\r\n\r\n', 'rejected', 1200],
    ['one that begins as a success', 'HTTP/1.1 2000 X\r\ncontent-length: 0\r\n\r\n', 'rejected', 2000],
  ])('%s', async (_, answer, kind, statusCode) => {
    const url = await answerWith(answer);
    expect(await deliverTo(url)).toMatchObject({ kind, statusCode });
  });

  test('but a connection that ends before the announced end stays unknown', async () => {
    for (const answer of ['HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok', 'HTTP/1.1 200 OK\r\nA: b', 'HTTP/1.1 2'])
      expect(await deliverTo(await answerWith(answer, close)), answer).toMatchObject({ kind: 'unknown' });
  });
});

describe('what is no HTTP at all is rejected, and says what came', () => {
  test.each([
    ['SSH-2.0-OpenSSH_9.2\r\n', 'SSH-2.0-OpenSSH_9.2'],
    ['220 mail ESMTP\r\n', '220 mail ESMTP'],
    ['HTTP/1.1 OK\r\n\r\n', 'HTTP/1.1 OK'],
    ['HTTP/1.1 2a0 OK\r\n\r\n', 'HTTP/1.1 2a0 OK'],
    ['RTSP/1.0 200 OK\r\n\r\n', 'RTSP/1.0 200 OK'],
    ['\x15\x03\x03\0\x02\x02', '......'],
  ])('%j', async (answer, quoted) => {
    expect(await deliverTo(await answerWith(answer))).toEqual({
      kind: 'rejected',
      statusCode: null,
      body: null,
      error: { kind: 'network', message: `what the target answered is not HTTP: "${quoted}"` },
    });
  });
});

describe('a body says the same in whatever bytes it comes', () => {
  const text = 'un caf\u00e9';
  test.each([
    ['UTF-8', '', Buffer.from(text)],
    ['a byte order mark', '', Buffer.from(`\ufeff${text}`)],
    ['ISO-8859-1', 'content-type: text/plain; charset=ISO-8859-1\r\n', Buffer.from(text, 'latin1')],
    ['UTF-16', '', Buffer.from(`\ufeff${text}`, 'utf16le')],
    ['gzip', 'content-encoding: gzip\r\n', gzipSync(text)],
    [
      'gzip of ISO-8859-1',
      'content-encoding: x-gzip\r\ncontent-type: text/plain;charset="latin1"\r\n',
      gzipSync(Buffer.from(text, 'latin1')),
    ],
  ])('%s', async (_, headers, body) => {
    expect(await deliverTo(await answerBytes(headers, body), REQUIRE_OK)).toMatchObject({
      kind: 'accepted',
      body: text,
    });
  });

  test('64 KiB are unpacked, of whatever it would become', async () => {
    const packed = gzipSync(Buffer.concat([Buffer.from(text), Buffer.alloc(40 * 1024 * 1024, 0x61)]));
    const outcome = await deliverTo(await answerBytes('content-encoding: gzip\r\n', packed), REQUIRE_OK);
    expect(outcome).toMatchObject({ kind: 'accepted', body: `${text}${'a'.repeat(4096 - 8)}` });
  });

  test.each([
    ['no gzip', 'content-encoding: gzip\r\n', Buffer.from(text)],
    ['another coding', 'content-encoding: br\r\n', Buffer.from(text)],
    ['a charset that does not exist', 'content-type: text/plain; charset=klingon\r\n', Buffer.from(text)],
    ['bytes that the charset lacks', 'content-type: text/plain; charset=euc-jp\r\n', Buffer.from([0xff, 0xff])],
  ])('of %s nobody knows what it says: it meets no requirement, and is not repeated', async (_, headers, body) => {
    const url = await answerBytes(headers, body);
    expect(await deliverTo(url)).toMatchObject({ kind: 'accepted' });
    expect(await deliverTo(url, REQUIRE_OK)).toMatchObject({
      kind: 'rejected',
      error: {
        message: 'the target answered 200, and its body cannot be decoded, so outcome.require is not met',
      },
    });
  });
});

test.each(['HTTP/1.1 200 OK\r\n\r\n', 'HTTP/1.0 200 OK\r\n\r\ndone'])(
  'an answer that only its end would end is cut short by a reset: %j is unknown, not a success',
  async (begun) => {
    const ending = (end: (socket: Socket) => void) =>
      receiveTcp((socket) => {
        // It arrives by itself, before the end does.
        socket.once('data', () => socket.write(begun, () => setTimeout(() => end(socket), 100)));
      });
    const reset = await ending((socket) => void socket.resetAndDestroy());
    expect(await deliverTo(reset)).toMatchObject({ kind: 'unknown' });
    const ended = await ending((socket) => void socket.end());
    expect(await deliverTo(ended)).toMatchObject({ kind: 'accepted', statusCode: 200 });
  },
);

describe('a kept connection that ends before any byte of an answer', () => {
  test.each([
    ['is closed', (socket: Socket) => socket.end()],
    ['is reset', (socket: Socket) => socket.resetAndDestroy()],
  ])('%s: the request is sent once more on a fresh one, and nothing is charged', async (_, end) => {
    const { url, requests } = await answeringFirst(end);
    const http = httpTarget();
    expect(await deliverTo(url, null, http)).toMatchObject({ kind: 'accepted' });
    expect(await deliverTo(url, null, http)).toMatchObject({ kind: 'accepted' });
    expect(requests()).toBe(3);
  });

  test('is not used at most once, and a fresh one that ends is unknown', async () => {
    const { url, requests } = await answeringFirst((socket) => socket.end(), 1);
    const http = httpTarget();
    expect(await deliverTo(url, null, http)).toMatchObject({ kind: 'accepted' });
    expect(await deliverTo(url, null, http)).toMatchObject({ kind: 'unknown' });
    expect(requests()).toBe(3);
  });

  test('after a byte of the answer it is unknown', async () => {
    const { url, requests } = await answeringFirst((socket) => socket.end('H'));
    const http = httpTarget();
    expect(await deliverTo(url, null, http)).toMatchObject({ kind: 'accepted' });
    expect(await deliverTo(url, null, http)).toMatchObject({ kind: 'unknown' });
    expect(requests()).toBe(2);
  });
});

/** Answers the first request of the first `good` connections, and ends each other request so. */
async function answeringFirst(end: (socket: Socket) => void, good = Infinity) {
  let [connections, requests] = [0, 0];
  const url = await receiveTcp((socket) => {
    connections += 1;
    let answers = connections <= good ? 1 : 0;
    socket.on('data', () => {
      requests += 1;
      if (answers-- > 0) socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
      else end(socket);
    });
  });
  return { url, requests: () => requests };
}

function answerBytes(headers: string, body: Buffer): Promise<string> {
  const head = `HTTP/1.1 200 OK\r\n${headers}content-length: ${body.length}\r\n\r\n`;
  return answerWith(head + body.toString('latin1'));
}

/** A byte a turn of the event loop. */
async function drip(socket: Socket, text: string): Promise<void> {
  for (const byte of text) {
    socket.write(byte);
    await new Promise((resolve) => setImmediate(resolve));
  }
}
