import type { Socket } from 'node:net';
import { STATUS_CODES } from 'node:http';
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import type { Api } from '../../deps.ts';
import { SECURITY_HEADERS } from './security-headers.ts';
import { PROBLEM_TYPE, Problem, nothingHere, problemBody, toProblem } from '../problem.ts';

type Handler = (request: FastifyRequest, reply: FastifyReply) => void;

/**
 * problem+json for everything that goes wrong, also where no route was found. Returns what answers then: for parts of the
 * server with hooks of their own.
 */
export function answerProblems(server: Api): Handler {
  const routes = new Map<string, Set<string>>();
  server.addHook('onRoute', ({ url, method }) => {
    const methods = routes.get(url) ?? new Set();
    for (const one of [method].flat()) methods.add(one);
    routes.set(url, methods);
  });
  server.setErrorHandler((error: unknown, request, reply) => sendProblem(error, request, reply));
  const answerNotFound: Handler = (request, reply) => {
    const path = request.url.replace(/[?#].*$/s, '');
    const allowed = [...routes].filter(([url]) => matches(url, path)).flatMap(([, methods]) => [...methods]);
    if (allowed.length === 0) throw nothingHere();
    const allow = [...new Set(allowed)].sort().join(', ');
    sendProblem(new Problem(405, `this path takes ${allow}`, { headers: { Allow: allow } }), request, reply);
  };
  server.setNotFoundHandler(answerNotFound);
  return answerNotFound;
}

/** Also for what the framework refuses before there is a route, such as a path that cannot be decoded. */
export function sendProblem(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const problem = toProblem(error);
  // The pool logs that the database is away; here it would be logged once per request.
  if (problem.status === 500) request.log.error({ err: problem.cause }, 'unforeseen error');
  // No check of ours foresaw it either, and nothing else says which it was.
  else if (problem.status === 400 && problem.cause !== undefined)
    request.log.warn({ err: problem.cause }, 'the database cannot hold a value of a request');
  else if (problem.status > 500) request.log.debug({ err: problem.cause }, problem.message);
  void reply
    .code(problem.status)
    // What the framework refuses before there is a route goes by no hook.
    .headers({ ...SECURITY_HEADERS, ...problem.headers })
    .type(PROBLEM_TYPE)
    .serializer(String)
    .send(JSON.stringify(problemBody(problem)));
}

/** What is not even HTTP, or too slow, or too much of it: the socket is answered and closed. */
export function refuseConnection(error: FastifyError | (Error & { code?: string }), socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, detail] = refusals.get(error.code ?? '') ?? [400, 'this is not HTTP as it should be'];
  const body = JSON.stringify(problemBody(new Problem(status, detail)));
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\nContent-Type: ${PROBLEM_TYPE}\r\n${ownHeaders}` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}

/** No hook adds them here. */
const ownHeaders = Object.entries(SECURITY_HEADERS)
  .map(([name, value]) => `${name}: ${value}\r\n`)
  .join('');

const refusals = new Map<string, [status: number, detail: string]>([
  ['HPE_HEADER_OVERFLOW', [431, 'the header is too large']],
  ['HPE_CHUNK_EXTENSIONS_OVERFLOW', [413, 'the chunk extensions are too large']],
  ['ERR_HTTP_REQUEST_TIMEOUT', [408, 'the request took too long to arrive']],
]);

function matches(url: string, path: string): boolean {
  const pattern = url.split('/');
  const steps = path.split('/');
  return (
    pattern.length === steps.length &&
    pattern.every((step, index) => step === steps[index] || (step.startsWith(':') && steps[index] !== ''))
  );
}
