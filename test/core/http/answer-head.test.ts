import { expect, test } from 'vitest';
import { headLength, isPlainHead, parseRetryAfter, readHead } from '../../../src/core/http/answer-head.ts';

const plain = 'HTTP/1.1 200 OK\r\nDate: Fri, 27 Nov 2026 09:00:00 GMT\r\nContent-Length: 2\r\n\r\n';

test('a head as servers write it is plain, whatever follows it', () => {
  for (const head of [plain, 'HTTP/1.0 404 Not Found\r\n\r\n', 'HTTP/1.1 599\r\nX: \u00e9\t\r\n\r\n'])
    expect([isPlainHead(bytesOf(head)), isPlainHead(bytesOf(`${head}ok`))], head).toEqual([true, true]);
});

test.each([
  ['that has not ended', plain.slice(0, -2)],
  ['that is cut within a value', plain.slice(0, 30)],
  ['with bare line ends', plain.replaceAll('\r', '')],
  ['with one bare line end', plain.replace('OK\r\n', 'OK\n')],
  ['with a folded line', plain.replace('\r\nContent', '\r\n more\r\nContent')],
  ['with a blank before a colon', plain.replace('Date:', 'Date :')],
  ['with a control character', plain.replace('Fri', 'F\x01i')],
  ['with two lengths', plain.replace('Date', 'Content-Length: 2\r\nDate')],
  ['with a length beside chunks', plain.replace('Date', 'Transfer-Encoding: chunked\r\nDate')],
  ['of an interim answer', 'HTTP/1.1 100 Continue\r\n\r\n'],
  ['with a status above 599', plain.replace('200', '600')],
  ['with no name', plain.replace('Date', '')],
  ['of another protocol', 'SSH-2.0-OpenSSH_9.2p1\r\n\r\n'],
  ['of one that looks like it', 'RTSP/1.0 200 OK\r\n\r\n'],
  ['with a status of four digits', plain.replace('200', '2000')],
  ['with a status that is no number', plain.replace('200', '2a0')],
  ['with no blank behind its status', plain.replace('200 ', '200')],
])('a head %s is not', (_, head) => {
  expect(isPlainHead(bytesOf(head))).toBe(false);
});

test.each([
  ['lines may end without CR', 'HTTP/1.1 200 OK\nA: b\n\n', ['A: b']],
  ['and only some of them', 'HTTP/1.1 200 OK\r\nA: b\n\r\n', ['A: b']],
  ['folded lines are one, joined by a blank', 'HTTP/1.1 200 OK\r\nA: b\r\n\t c\r\n d\r\n\r\n', ['A: b c d']],
  ['blanks before a colon are none of the name', 'HTTP/1.1 200 OK\r\nA \t: b\r\n\r\n', ['A: b']],
  ['control characters are blanks', 'HTTP/1.1 200 OK\r\nA: b\0\x7fc\r\n\r\n', ['A: b  c']],
  ['what is no header is left out', 'HTTP/1.1 200 OK\r\nwhat\r\n: x\r\nA: b\r\n\r\n', ['A: b']],
  [
    'equal lengths are one',
    'HTTP/1.1 200 OK\r\nContent-Length: 2\r\ncontent-length: 2, 2\r\n\r\n',
    ['Content-Length: 2'],
  ],
  [
    'chunks win over a length',
    'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n',
    ['Transfer-Encoding: chunked'],
  ],
])('%s', (_, head, lines) => {
  expect(headLength(bytesOf(`${head}body\n\n`))).toBe(head.length);
  expect(readHead(head)).toEqual({
    statusCode: 200,
    text: `HTTP/1.1 200 \r\n${lines.map((line) => `${line}\r\n`).join('')}\r\n`,
  });
});

test.each(['2\r\nContent-Length: 3', '2, 3', '-1', '', '0x2'])(
  'nobody knows where a body of length %j ends',
  (length) => {
    const head = `HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n`;
    expect(readHead(head)).toEqual({ statusCode: 200, text: null });
  },
);

test.each([
  ['HTTP/1.1 999 X', 999],
  ['HTTP/1.1 1000', 1000],
  ['http/1.0  204 ', 204],
  ['HTTP/2 200', 200],
  ['HTTP/1.1 200OK', 200],
  ['HTTP/1.1 20', null],
  ['HTTP/1.1 099 X', null],
  ['ICY 200 OK', null],
  ['', null],
])('the status line %j says %j', (line, statusCode) => {
  expect(readHead(`${line}\r\n\r\n`)?.statusCode ?? null).toBe(statusCode);
});

function bytesOf(text: string): Buffer {
  return Buffer.from(text, 'latin1');
}

const now = Date.UTC(1994, 10, 6, 8, 49, 0);

test.each([
  ['120', 120],
  [' 120 ', 120],
  ['0', 0],
  ['-5', 0],
  ['Sun, 06 Nov 1994 08:49:37 GMT', 37],
  ['Sunday, 06-Nov-94 08:49:37 GMT', 37],
  ['Sun Nov  6 08:49:37 1994', 37],
  ['Sun, 06 Nov 1994 08:48:00 GMT', 0],
  ['9'.repeat(400), Number.MAX_SAFE_INTEGER],
])('reads %j as %d seconds', (value, seconds) => {
  expect(parseRetryAfter(value, now)).toBe(seconds);
});

test.each(['', 'soon', '1.5', '1e3', '0x10', '12 s', '1994-11-06', 'Sun, 99 Nov 1994 08:49:37 GMT', 'Infinity'])(
  'takes %j for garbage',
  (value) => {
    expect(parseRetryAfter(value, now)).toBeNull();
  },
);

test('rounds a part of a second up, so that no attempt comes too early', () => {
  expect(parseRetryAfter('Sun, 06 Nov 1994 08:49:01 GMT', now + 500)).toBe(1);
});
