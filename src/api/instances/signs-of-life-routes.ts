import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import type { Api, ApiDeps } from '../deps.ts';
import { json, TAGS } from '../http/routes.ts';

const readiness = z
  .object({
    status: z.enum(['ready', 'unavailable']),
    checks: z.record(z.string(), z.string()).meta({ description: '`ok` or the fault, by name.' }),
    warnings: z.array(z.string()).meta({
      description:
        'What an operator should know and what does not stop the work: loops that fail, stranded runs, late schedules, instances that ' +
        'differ in their time zone data.',
    }),
  })
  .meta({ id: 'Readiness' });

const tags = [TAGS.signs];

export type SignsDeps = Pick<ApiDeps, 'readiness' | 'metrics' | 'clock'>;

/** Outside /api/v1, and answered whatever state the database is in. */
export function addSignsOfLife(server: Api, deps: SignsDeps): void {
  server.get(
    '/healthz',
    {
      schema: {
        operationId: 'getHealth',
        summary: 'The process is alive',
        tags,
        response: { 200: json('Alive', z.object({ status: z.literal('ok') })) },
      },
    },
    () => ({ status: 'ok' }),
  );
  server.get(
    '/readyz',
    {
      schema: {
        operationId: 'getReadiness',
        summary: 'Whether this instance does its work; warnings leave it ready',
        tags,
        response: { 200: json('Ready', readiness), 503: json('Not ready', readiness) },
      },
    },
    (_request, reply) => {
      const state = deps.readiness();
      return reply.code(state.status === 'ready' ? 200 : 503).send(state);
    },
  );
  addMetrics(server, deps);
}

function addMetrics(server: Api, { metrics, clock }: SignsDeps): void {
  const text = onceASecond(clock, metrics.text);
  server.get(
    '/metrics',
    {
      schema: {
        operationId: 'getMetrics',
        summary: 'Metrics for Prometheus',
        tags,
        response: {
          200: { description: 'Exposition format', content: { 'text/plain': { schema: z.string() } } },
        },
      },
    },
    async (_request, reply: FastifyReply) => reply.type(metrics.contentType).send(await text()),
  );
}

/** Anybody may ask, as often as they like: then all get the same bytes, which are held once. */
function onceASecond(clock: ApiDeps['clock'], write: () => Promise<string>): () => Promise<Buffer> {
  let written: { at: number; bytes: Promise<Buffer> } | undefined;
  return () => {
    const now = clock.monotonic();
    if (written === undefined || now - written.at >= 1000)
      written = { at: now, bytes: write().then((text) => Buffer.from(text)) };
    return written.bytes;
  };
}
