/** The target of every POST: a process of its own that answers 204 at once and notes what came when. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Arrivals, FromReceiver, ToReceiver } from './receiver.ts';

let arrivals: Arrivals = { runIds: [], at: [] };
let expected = Infinity;

const server = createServer((request, response) => {
  arrivals.at.push(Date.now());
  arrivals.runIds.push(String(request.headers['idempotency-key']));
  request.resume();
  response.writeHead(204).end();
  if (arrivals.at.length === expected) tell({ type: 'complete' });
});
// A herd must not begin with connections that were closed since the warm-up.
server.keepAliveTimeout = 300_000;

process.on('message', (message: ToReceiver) => {
  if (message.type === 'expect') {
    arrivals = { runIds: [], at: [] };
    expected = message.count;
  } else {
    tell({ type: 'arrivals', arrivals });
  }
});
process.on('disconnect', () => process.exit());

server.listen(0, '127.0.0.1', () => {
  tell({ type: 'listening', port: (server.address() as AddressInfo).port });
});

function tell(message: FromReceiver): void {
  process.send?.(message);
}
