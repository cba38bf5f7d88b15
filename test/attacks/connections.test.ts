// @module-tag attack
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { sharedApi } from '../api/api.ts';
import { until } from '../support/until.ts';
import { openConnection } from './raw-connection.ts';

const api = sharedApi();
const connect = () => openConnection(api.url);

test('five hundred requests at once over one connection are answered in their order', async () => {
  const { socket, received } = await connect();
  const request = (index: number) =>
    `GET /api/v1/runs/${index % 2 === 0 ? 'even' : 'me'} HTTP/1.1\r\nHost: localhost\r\n\r\nGET /nothing/${index} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
  socket.write(Array.from({ length: 250 }, (_, index) => request(index)).join(''));
  const statuses = await until(() => {
    const found = received().match(/HTTP\/1\.1 \d+/g) ?? [];
    return found.length === 500 ? found : null;
  });
  expect(statuses).toEqual(Array.from({ length: 250 }, () => ['HTTP/1.1 400', 'HTTP/1.1 404']).flat());
});

test('a request behind a broken one is not answered', async () => {
  const { socket, received } = await connect();
  socket.write('GET / HTTP/9.9\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await once(socket, 'close');
  expect(received().match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 400']);
});

test('a request smuggled into a body stays part of the body', async () => {
  const { socket, received } = await connect();
  const inner = 'DELETE /api/v1/schedules/there HTTP/1.1\r\nHost: localhost\r\n\r\n';
  socket.write(
    'POST /api/v1/preview HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n' +
      `Content-Length: ${inner.length}\r\n\r\n${inner}GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`,
  );
  await once(socket, 'close');
  // A connection whose body was no good is not used again.
  expect(received().match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 400']);
});

test('a request with Expect: 100-continue gets that answer, and its body counts', async () => {
  const { socket, received } = await connect();
  const body = '{"maxRunning":1}';
  socket.write(
    'PUT /api/v1/limits/expected HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n' +
      `Content-Length: ${body.length}\r\n\r\n`,
  );
  await until(() => (received().startsWith('HTTP/1.1 100 ') ? true : null));
  socket.write(body);
  await until(() => (received().includes('HTTP/1.1 201 ') ? true : null));
});

test('of large bodies eight are read at once, a further one waits its turn, and small ones do not wait', async () => {
  const items = `{"items":[],"dryRun":true}${' '.repeat(300_000)}`;
  const head = (length: number) =>
    'POST /api/v1/schedules/batch HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n' +
    `Content-Length: ${length}\r\n\r\n`;
  const slow = [];
  for (let index = 0; index < 8; index += 1) {
    const one = await connect();
    one.socket.write(head(16 * 1024 * 1024) + '{"items":[');
    slow.push(one);
  }
  // An answer over a connection that was opened later: the eight have been read by then.
  expect((await api.call('POST', '/api/v1/schedules/batch', { items: [] })).status).toBe(200);
  const ninth = await connect();
  ninth.socket.write(head(items.length) + items);
  expect((await api.call('POST', '/api/v1/schedules/batch', { items: [] })).status).toBe(200);
  expect(ninth.received()).toBe('');
  slow[0]?.socket.destroy();
  await until(() => (ninth.received().startsWith('HTTP/1.1 200 ') ? true : null));
  // The place of one who gives up while waiting is not lost either.
  const tenth = await connect();
  tenth.socket.write(head(items.length) + items);
  await until(() => (tenth.received().startsWith('HTTP/1.1 200 ') ? true : null));
});
