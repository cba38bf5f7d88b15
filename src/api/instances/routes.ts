import { z } from 'zod';
import { listInstances } from '../../store/instances/instances.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { addRoute, json, TAGS } from '../http/routes.ts';
import { answeredInstant } from '../http/common-schemas.ts';
import { systemClock } from '../../runtime/clock.ts';
import { checkOnSnapshot, VERIFY_LIMIT_MS } from '../../store/verify/check-on-snapshot.ts';
import { answersOf } from '../http/stored-answers.ts';

const instance = z
  .object({
    id: z.string().meta({ format: 'uuid' }),
    host: z.string(),
    port: z.int().nullable().meta({ description: 'Where its API listens.' }),
    version: z.string(),
    zoneData: z.string().meta({
      description:
        'Version of the time zone data that it plans with. Where the living differ, /readyz warns.',
      example: '2026c',
    }),
    startedAt: answeredInstant,
    heartbeatAt: answeredInstant,
    alive: z.boolean(),
    leftAt: answeredInstant
      .nullable()
      .meta({ description: 'It ended in good order; null: it lives, or was declared dead.' }),
    inFlight: z.int().meta({ description: 'Runs it has claimed and not settled.' }),
  })
  .meta({ id: 'Instance' });

export const instanceList = z.object({ items: z.array(instance) });

const answered = answersOf(instance);

export function addInstanceRoutes(api: Api, { database }: ApiDeps): void {
  addRoute(api, {
    ...{ route: 'GET /instances', operationId: 'listInstances' },
    config: { role: 'viewer', scope: 'unscoped' },
    summary: 'The daemon processes, newest first; the dead stay listed for a day',
    ...{ tags: [TAGS.instances], answers: { 200: json('All instances', instanceList) } },
    handler: async (): Promise<z.output<typeof instanceList>> => {
      const listed = await database.run((db) => listInstances(db));
      return { items: listed.map(answered) };
    },
  });
}

export const verification = z
  .object({
    ok: z.boolean().meta({ description: 'Every check was completed, and none found a violation.' }),
    checks: z.array(
      z.object({
        name: z.string(),
        holds: z.string().meta({ description: 'What the check looks for violations of.' }),
        complete: z.boolean().meta({ description: 'False: it took longer than 5 seconds, and was stopped.' }),
        violations: z.int().meta({ minimum: 0, description: 'Counted up to 10,000.' }),
        examples: z.array(z.string()).meta({ description: 'The first 10 of them.' }),
      }),
    ),
  })
  .meta({ id: 'Verification' });

export function addVerifyRoute(api: Api, { database }: ApiDeps): void {
  addRoute(api, {
    ...{ route: 'GET /verify', operationId: 'verify' },
    config: { role: 'operator', scope: 'unscoped', pace: 'slow' },
    summary: 'Check on the live database what must always hold',
    description:
      'One snapshot, read only. All schedules and open runs are looked at, and of ended runs the newest 100,000. ' +
      'Takes 30 seconds at most. Soon after an outage it may name work that is being made up for.',
    ...{ tags: [TAGS.instances], answers: { 200: json('What was found', verification) } },
    handler: async (): Promise<z.output<typeof verification>> => {
      const checks = await database.transaction(
        (tx) => checkOnSnapshot(tx, () => systemClock.monotonic()),
        VERIFY_LIMIT_MS,
      );
      return { ok: checks.every(({ complete, violations }) => complete && violations === 0), checks };
    },
  });
}
