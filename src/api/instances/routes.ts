import { z } from 'zod';
import type { FastifyReply } from 'fastify';
import { listInstances } from '../../store/instances/instances.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { addRoute, answersOf, json, TAGS } from '../http/routes.ts';
import { answeredInstant } from '../http/common-schemas.ts';
import { systemClock } from '../../runtime/clock.ts';
import { checkOnSnapshot, VERIFY_LIMIT_MS } from '../../store/verify/check-on-snapshot.ts';

const instance = z
  .object({
    id: z.string().meta({ format: 'uuid' }),
    host: z.string(),
    port: z.int().nullable().describe('Where its API listens.'),
    version: z.string(),
    zoneData: z.string().meta({
      description: 'Version of the time zone data that it plans with. Where the living differ, /readyz warns.',
      example: '2026c',
    }),
    startedAt: answeredInstant,
    heartbeatAt: answeredInstant,
    alive: z.boolean(),
    leftAt: answeredInstant.nullable().describe('It ended in good order; null: it lives, or was declared dead.'),
    inFlight: z.int().describe('Runs it has claimed and not settled.'),
  })
  .meta({ id: 'Instance' });

export const instanceList = z.object({ items: z.array(instance) });

const answered = answersOf(instance);

export function addInstanceRoutes(api: Api, { database }: ApiDeps): void {
  addRoute(api, {
    route: 'GET /instances',
    operationId: 'listInstances',
    config: { role: 'viewer', scope: 'unscoped' },
    summary: 'The daemon processes, newest first; the dead stay listed for a day',
    tags: [TAGS.instances],
    answers: { 200: json('All instances', instanceList) },
    handler: async (): Promise<z.output<typeof instanceList>> => {
      const listed = await database.run((db) => listInstances(db));
      return { items: listed.map(answered) };
    },
  });
}

export const verification = z
  .object({
    ok: z.boolean().describe('Every check was completed, and none found a violation.'),
    checks: z.array(
      z.object({
        name: z.string(),
        holds: z.string().describe('What the check looks for violations of.'),
        complete: z.boolean().describe('False: it took longer than 5 seconds, and was stopped.'),
        violations: z.int().meta({ minimum: 0, description: 'Counted up to 10,000.' }),
        examples: z.array(z.string()).describe('The first 10 of them.'),
      }),
    ),
  })
  .meta({ id: 'Verification' });

export function addVerifyRoute(api: Api, { database }: ApiDeps): void {
  addRoute(api, {
    route: 'GET /verify',
    operationId: 'verify',
    config: { role: 'operator', scope: 'unscoped', pace: 'slow' },
    summary: 'Check on the live database what must always hold',
    description:
      'One snapshot, read only. All schedules and open runs are looked at, and of ended runs the newest 100,000. ' +
      'Takes 30 seconds at most. Soon after an outage it may name work that is being made up for.',
    tags: [TAGS.instances],
    answers: { 200: json('What was found', verification) },
    handler: async (): Promise<z.output<typeof verification>> => {
      const checks = await database.transaction(
        (tx) => checkOnSnapshot(tx, () => systemClock.monotonic()),
        VERIFY_LIMIT_MS,
      );
      return { ok: checks.every(({ complete, violations }) => complete && violations === 0), checks };
    },
  });
}

const readiness = z
  .object({
    status: z.enum(['ready', 'unavailable']),
    checks: z.record(z.string(), z.string()).describe('`ok` or the fault, by name.'),
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
