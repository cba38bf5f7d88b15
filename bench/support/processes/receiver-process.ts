/** The target of every POST: a process of its own that answers 204 at once and notes what came when. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Arrivals, FromReceiver, ToReceiver } from './receiver.ts';

let arrivals = nothing();
let expected = Infinity;
let herd = 0;

const server = createServer((request, response) => {
  const { headers } = request;
  arrivals.at.push(Date.now());
  arrivals.runIds.push(String(headers['idempotency-key']));
  // Parsing 30,000 bodies a second would take from those who share the cores; the headers are parsed already.
  arrivals.sources.push(String(headers['ce-source']));
  arrivals.scheduledFor.push(String(headers['ce-time']));
  request.resume();
  response.writeHead(204).end();
  if (arrivals.at.length === expected) send({ type: 'complete', herd });
});
// A herd must not begin with connections that were closed since the warm-up.
server.keepAliveTimeout = 300_000;

process.on('message', (message: ToReceiver) => {
  if (message.type === 'expect') {
    arrivals = nothing();
    ({ count: expected, herd } = message);
  } else {
    send({ type: 'arrivals', arrivals });
  }
});
process.on('disconnect', () => process.exit());

server.listen(0, '127.0.0.1', () => {
  send({ type: 'listening', port: (server.address() as AddressInfo).port });
});

function nothing(): Arrivals {
  return { runIds: [], at: [], sources: [], scheduledFor: [] };
}

function send(message: FromReceiver): void {
  process.send?.(message);
}
