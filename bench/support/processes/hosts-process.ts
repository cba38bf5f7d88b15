/** Several targets of different origin in one process: each answers 204 after a while, or never, and notes what came when. */
import { type Server, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Fires, FromHosts, ToHosts } from './hosts.ts';

const [count, answerAfterMs] = process.argv.slice(2).map(Number) as [number, number];

let fires: Fires = none();
let silentFrom = Infinity;

const servers = Array.from({ length: count }, (_, host) => startServer(host));
process.on('disconnect', () => process.exit());
process.on('message', (message: ToHosts) => {
  if (message.type === 'silence') silentFrom = message.from;
  else {
    send({ type: 'fires', fires });
    fires = none();
  }
});
await Promise.all(servers.map((server) => new Promise((resolve) => server.once('listening', resolve))));
send({ type: 'listening', ports: servers.map((server) => (server.address() as AddressInfo).port) });

function startServer(host: number): Server {
  const server = createServer((request, response) => {
    fires.at.push(Date.now());
    fires.host.push(host);
    // The id carries the moment it was due: UUID version 7.
    const id = String(request.headers['idempotency-key']);
    fires.dueAt.push(parseInt(id.slice(0, 8) + id.slice(9, 13), 16));
    request.resume();
    if (host >= silentFrom) return;
    if (answerAfterMs === 0) response.writeHead(204).end();
    else setTimeout(() => response.writeHead(204).end(), answerAfterMs);
  });
  server.keepAliveTimeout = 300_000;
  return server.listen(0, '127.0.0.1');
}

function none(): Fires {
  return { host: [], dueAt: [], at: [] };
}

function send(message: FromHosts): void {
  process.send?.(message);
}
