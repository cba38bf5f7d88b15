import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Api } from '../../deps.ts';
import { nothingHere, Problem, PROBLEM_TYPE, problemBody, toProblem } from '../problem.ts';

/** Answers every error as problem+json, also where no route was found. */
export function answerProblems(server: Api): void {
  const paths = createKnownPaths();
  server.addHook('onRoute', (route) => paths.add(route));
  const elsewhere = ({ url }: FastifyRequest): Problem => {
    const allowed = paths.methodsAt(pathOf(url));
    return allowed.length === 0 ? nothingHere() : methodNotAllowed(allowed);
  };
  // After the hooks that ask who calls, and before the body.
  server.addHook('preParsing', async (request) => {
    const { url, is404, routeOptions } = request;
    if (is404 || !paths.isMeantFor(pathOf(url), routeOptions)) throw elsewhere(request);
    return Promise.resolve(undefined);
  });
  server.setErrorHandler((error: unknown, request, reply) => {
    // Without a route, faults of the request do not matter.
    const isFault = request.is404 && toProblem(error).status === 400;
    sendProblem(isFault ? elsewhere(request) : error, request, reply);
  });
  server.setNotFoundHandler(notFound);
}

/** For each part of a server whose hooks are to run where there is no route, too: they have answered before it is called. */
export function notFound(): never {
  throw nothingHere();
}

/** Also for requests that the framework refuses before there is a route, such as a path that cannot be decoded. */
export function sendProblem(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const problem = toProblem(error, request.routeOptions.bodyLimit);
  // The pool logs that the database is away; here it would be logged once per request.
  if (problem.status === 500) request.log.error({ err: problem.cause }, 'a call failed with an unexpected error');
  // None of our checks foresaw this error, and the answer does not describe it.
  else if (problem.status === 400 && problem.cause !== undefined)
    request.log.warn({ err: problem.cause }, 'the database refused a value of a request');
  else if (problem.status > 500) request.log.debug({ err: problem.cause }, problem.message);
  void reply
    .code(problem.status)
    // A request that the framework refuses before there is a route passes no hook.
    .headers({ ...SECURITY_HEADERS, ...problem.headers })
    .type(PROBLEM_TYPE)
    .serializer(String)
    .send(JSON.stringify(problemBody(problem)));
}

function pathOf(url: string): string {
  return url.replace(/[?#].*$/s, '');
}

function methodNotAllowed(allowed: readonly string[]): Problem {
  const allow = allowed.join(', ');
  return new Problem(405, `this path supports only ${allow}`, { headers: { Allow: allow } });
}

/** One route; `url` is a pattern such as `/runs/:id`. */
interface Route {
  url?: string | undefined;
  method: string | string[];
  schema?: { params?: unknown } | undefined;
}

/** Which methods the routes take at which path. */
interface KnownPaths {
  add(route: Route): void;
  /** Sorted; empty: there is nothing at this path. */
  methodsAt(path: string): string[];
  /**
   * False: the path belongs to another route, and as a parameter of this one it would only be wrong (`batch` as the id
   * of a run).
   */
  isMeantFor(path: string, route: Route): boolean;
}

function createKnownPaths(): KnownPaths {
  const routes: Route[] = [];
  const isMeantFor: KnownPaths['isMeantFor'] = (path, { url = '', schema }) => {
    if (!url.includes(':') || !routes.some((other) => other.url === path)) return true;
    return !(schema?.params instanceof z.ZodType) || schema.params.safeParse(parametersOf(url, path)).success;
  };
  return {
    add: (route) => routes.push(route),
    methodsAt: (path) => {
      const there = routes.filter((route) => matches(route.url ?? '', path) && isMeantFor(path, route));
      return [...new Set(there.flatMap(({ method }) => method))].sort();
    },
    isMeantFor,
  };
}

function matches(url: string, path: string): boolean {
  const pattern = url.split('/');
  const steps = path.split('/');
  return (
    pattern.length === steps.length &&
    pattern.every((step, index) => step === steps[index] || isFor(step, steps[index] ?? ''))
  );
}

/** A step of a pattern: `:name`, or `:name(expression)`. */
function isFor(step: string, given: string): boolean {
  const [, expression = '.'] = /^:\w+(?:\((.+)\))?$/.exec(step) ?? [];
  return step.startsWith(':') && new RegExp(expression).test(given);
}

function parametersOf(url: string, path: string): Record<string, string> {
  const steps = path.split('/');
  return Object.fromEntries(
    url.split('/').flatMap((step, index) => (step.startsWith(':') ? [[step.slice(1), steps[index] ?? '']] : [])),
  );
}

/**
 * Headers for browsers, on every answer that does not set them itself. A browser must not guess the type of an answer,
 * show it in a frame of another page, let another page read it, or tell other sites where a link came from. A page says
 * itself what it may load (openapi.ts). Nothing is cached: an answer may be meant for a caller with a token, and is out
 * of date a moment later.
 */
export const SECURITY_HEADERS = {
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Cache-Control': 'no-store',
} as const;

export function addSecurityHeaders(server: Api): void {
  server.addHook('onSend', (_request, reply, _payload, done) => {
    for (const [name, value] of Object.entries(SECURITY_HEADERS))
      if (!reply.hasHeader(name)) void reply.header(name, value);
    done();
  });
}
