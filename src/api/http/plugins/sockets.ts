import { type IncomingMessage, STATUS_CODES, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyError } from 'fastify';
import type { Api } from '../../deps.ts';
import { PROBLEM_TYPE, Problem, problemBody } from '../problem.ts';
import { type ConnectionLimits, type Strangers, limitStrangers } from './strangers.ts';
import { SECURITY_HEADERS } from './every-answer.ts';

/** For the request line and the headers together. */
const MAX_HEADER_BYTES = 16 * 1024;
const MAX_HEADERS = 100;
const HEADERS_SECONDS = 15;
const REQUEST_SECONDS = 60;
/** Longer than proxies keep an idle connection: the proxy closes it, not we. */
const KEEP_ALIVE_SECONDS = 75;
/** No data for this long; a worker that waits for work waits for a minute at most. */
const SILENT_SECONDS = 180;

/** Options of the server: how long clients may take, and how much they may say. */
export const SOCKET_LIMITS = {
  requestTimeout: REQUEST_SECONDS * 1000,
  keepAliveTimeout: KEEP_ALIVE_SECONDS * 1000,
  connectionTimeout: SILENT_SECONDS * 1000,
  http: {
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: HEADERS_SECONDS * 1000,
    /** How often the server looks for connections that have taken too long. */
    connectionsCheckingInterval: 5_000,
  },
} as const;

/** The other limits, which the framework does not know, and an answer where the framework would send none. */
export function guardSockets(api: Api, limits: ConnectionLimits): Strangers {
  const { server } = api;
  const strangers = limitStrangers(server, limits);
  // One more than allowed, to notice that there are more.
  server.maxHeadersCount = MAX_HEADERS + 1;
  const expecting = new WeakSet<IncomingMessage>();
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    expecting.add(request);
    server.emit('request', request, response);
  });
  // A client is asked for its body only once the request is not refused.
  api.addHook('preParsing', async ({ raw }, reply) => {
    if (expecting.has(raw)) reply.raw.writeContinue();
    return Promise.resolve(undefined);
  });
  server.on('checkExpectation', (_request: IncomingMessage, response: ServerResponse) => {
    const body = JSON.stringify(problemBody(new Problem(417, 'Expect supports only 100-continue')));
    const headers = { ...SECURITY_HEADERS, 'Content-Type': PROBLEM_TYPE, Connection: 'close' };
    response.writeHead(417, headers).end(body);
  });
  server.on('connect', (_request: IncomingMessage, socket: Socket) =>
    answerAndClose(socket, new Problem(400, 'this server is not a proxy: it does not support CONNECT')),
  );
  api.addHook('onRequest', async ({ raw }, reply) => {
    const problem = faultOfHeaders(raw);
    if (problem === null) return Promise.resolve();
    void reply.header('Connection', 'close');
    throw problem;
  });
  return strangers;
}

/** The request is not even HTTP, or too slow, or too large: the socket is answered and closed. */
export function refuseConnection(error: FastifyError | (Error & { code?: string }), socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, detail] = refusals.get(error.code ?? '') ?? [400, 'the request is not valid HTTP'];
  answerAndClose(socket, new Problem(status, detail));
}

function answerAndClose(socket: Socket, problem: Problem): void {
  const { status } = problem;
  const body = JSON.stringify(problemBody(problem));
  // If the client has reset the socket meanwhile, an answer is useless.
  socket.on('error', () => undefined);
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\nContent-Type: ${PROBLEM_TYPE}\r\n${ownHeaders}` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}

/** No hook adds them here. */
const ownHeaders = Object.entries(SECURITY_HEADERS)
  .map(([name, value]) => `${name}: ${value}\r\n`)
  .join('');

const TOO_MUCH_HEADER = `the request line and the headers are larger than ${MAX_HEADER_BYTES} bytes together`;
const TOO_SLOW =
  `the request took too long to arrive: its headers may take ${HEADERS_SECONDS} s, ` + `all of it ${REQUEST_SECONDS} s`;

const refusals = new Map<string, [status: number, detail: string]>([
  ['HPE_HEADER_OVERFLOW', [431, TOO_MUCH_HEADER]],
  ['HPE_CHUNK_EXTENSIONS_OVERFLOW', [413, 'the extensions of a chunk are larger than 16384 bytes']],
  ['ERR_HTTP_REQUEST_TIMEOUT', [408, TOO_SLOW]],
]);

/** One server reads this in one way and the next in another, which request smuggling uses. */
function faultOfHeaders({ rawHeaders, headers }: IncomingMessage): Problem | null {
  if (rawHeaders.length > 2 * MAX_HEADERS) return new Problem(431, `the request has more than ${MAX_HEADERS} headers`);
  const hosts = rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === 'host');
  if (hosts.length > 1) return new Problem(400, 'the request has more than one Host header');
  const coding = headers['transfer-encoding'];
  if (coding === undefined || coding.toLowerCase() === 'chunked') return null;
  return new Problem(400, 'Transfer-Encoding supports only chunked');
}
