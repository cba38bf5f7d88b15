// @module-tag attack
// @module-tag long
import { expect, test } from 'vitest';
import { boundedDaemon, residentMiB } from './bounded-daemon.ts';
import { openConnection } from './raw-connection.ts';

const HOST = ' HTTP/1.1\r\nHost: localhost\r\n';
const BODY = 255 * 1024;

test('pipelines, answers that nobody reads and bodies for no route do not fill the memory of a daemon', async () => {
  const daemon = await boundedDaemon(96);
  const before = await residentMiB(daemon);
  const openAll = async (count: number, beginning: string, reads = false) => {
    for (let opened = 0; opened < count; opened += 1)
      await openConnection(daemon.url, { beginning, reads, localAddress: `127.0.1.${1 + (opened % 4)}` });
  };
  await openAll(8, `GET /metrics${HOST}\r\n`.repeat(1500));
  await openAll(300, `GET /openapi.json${HOST}\r\n`.repeat(100));
  const announced = `Content-Type: application/json\r\nContent-Length: ${BODY + 1}\r\n\r\n`;
  await openAll(300, `POST /nope${HOST}${announced}${'x'.repeat(BODY)}`, true);
  const alive = await openConnection(daemon.url, { beginning: `GET /healthz${HOST}\r\n` });
  await alive.answered();
  expect(alive.statuses()).toEqual([200]);
  expect((await residentMiB(daemon)) - before).toBeLessThan(250);
  expect(daemon.isRunning()).toBe(true);
});
