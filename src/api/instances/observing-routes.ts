import { z } from 'zod';
import type { KnownState } from '../../core/installation.ts';
import { isoOrNull } from '../../core/instant.ts';
import type { TookOver } from '../../operations/take-over.ts';
import { reasonOf } from '../../runtime/reason.ts';
import { readInstallation } from '../../store/instances/installation-row.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { answeredInstant, instant } from '../http/common-schemas.ts';
import { Problem } from '../http/problem.ts';
import { addRoute, json, TAGS } from '../http/routes.ts';
import { answersOf } from '../http/stored-answers.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** A route that changes something, and that an instance which only observes answers as well. */
    alsoObserving?: true;
  }
}

const READING = ['GET', 'HEAD'];

/** Routes for viewers change nothing, whatever their method is. */
export function refuseWhileObserving(api: Api, installation: () => KnownState): void {
  api.addHook('onRequest', async ({ method, is404, routeOptions: { config } }) => {
    const known = installation();
    const changes = !READING.includes(method) && config.role !== 'viewer' && config.alsoObserving !== true;
    if (known.mode === 'observes' && changes && !is404) throw new Problem(503, refusal(known));
    return Promise.resolve();
  });
}

function refusal({ because, isReadOnly }: KnownState): string {
  const why = because === 'setting' ? 'FIRELOCK_OBSERVE is set' : 'the database says so';
  const promote = isReadOnly ? 'promote the database, which is read only, and then ' : '';
  const restart = because === 'setting' ? ', and start the instances without FIRELOCK_OBSERVE' : '';
  return (
    `this instance only observes (${why}): it answers reads, and changes nothing; call the installation that works, or ${promote}` +
    `take over with \`firelock take-over --since TIME\`${restart}`
  );
}

const takeOverAnswer = z.object({
  at: answeredInstant,
  since: answeredInstant.meta({ description: 'What was due from this moment on is fired.' }),
  by: z.string().nullable().meta({ description: 'The name of the caller.' }),
});

const answeredTakeOver = answersOf(takeOverAnswer);

const observingAnswer = z
  .object({
    observing: z.boolean().meta({
      description: 'This instance plans nothing, sends nothing and changes nothing.',
    }),
    because: z.enum(['setting', 'database']).nullable().meta({
      description: '`setting`: FIRELOCK_OBSERVE, of this instance alone. `database`: all its instances do.',
    }),
    since: answeredInstant.nullable().meta({ description: 'Where the database says so.' }),
    reason: z.string().nullable(),
    readOnly: z
      .boolean()
      .meta({ description: 'The database accepts no writes: promote it before a take-over.' }),
    tookOver: takeOverAnswer.nullable().meta({ description: 'The last take-over.' }),
  })
  .meta({ id: 'Observing' });

export const tookOverAnswer = takeOverAnswer
  .extend({
    moved: z.int().meta({ description: 'Schedules of which something was due before `since`.' }),
    skipped: z
      .int()
      .meta({ description: 'Fires due before `since`, recorded as one skipped run a schedule.' }),
    notMoved: z.array(z.object({ scheduleId: z.string(), error: z.string() })).meta({
      description: 'Schedules whose fires cannot be counted.',
    }),
    unknown: z.int().meta({ description: 'At-most-once runs that may have been sent: not sent again.' }),
    asked: z.int().meta({ description: 'Runs whose target is asked first whether it has them.' }),
    left: z.int().meta({ description: 'Runs that are sent under their ids.' }),
    observesOn: z.boolean().meta({
      description: 'FIRELOCK_OBSERVE is set on the instance that answered: start it without.',
    }),
  })
  .meta({ id: 'TookOver' });

const tags = [TAGS.instances];

export function addObservingRoute(api: Api, { database, installation }: ApiDeps): void {
  addRoute(api, {
    ...{ route: 'GET /observing', operationId: 'getObserving' },
    config: { role: 'viewer', scope: 'nameless' },
    summary: 'Whether this instance only observes, and why',
    ...{ tags, answers: { 200: json('As it is now', observingAnswer) } },
    handler: async ({ caller: { scope } }): Promise<z.output<typeof observingAnswer>> => {
      const { tookOver } = await database.run(readInstallation);
      const { mode, because, since, reason, isReadOnly: readOnly } = installation();
      const said = { observing: true, because, since: isoOrNull(since), reason, readOnly };
      return {
        ...(mode === 'observes' ? said : WORKING),
        // Who the others are is not for a caller with a scope.
        tookOver: tookOver && answeredTakeOver({ ...tookOver, by: scope === null ? tookOver.by : null }),
      };
    },
  });
}

const WORKING = { observing: false, because: null, since: null, reason: null, readOnly: false };

export function addTakeOverRoute(api: Api, { takeOver }: ApiDeps): void {
  addRoute(api, {
    ...{ route: 'POST /take-over', operationId: 'takeOver' },
    config: {
      ...{ role: 'admin', scope: 'unscoped', pace: 'slow', alsoObserving: true },
      audits: ['installation.take-over'],
    },
    summary: 'Take over from another installation: fire what was due from a moment on',
    description:
      'Refused while an instance works on this database, by its heartbeats, and while the database is read only.',
    tags,
    body: z.strictObject({
      since: instant.meta({ description: 'In the past. What was due before is skipped.' }),
    }),
    ...{ answers: { 200: json('What was done', tookOverAnswer) }, refusals: [409] },
    handler: async ({ body: { since }, caller }) => {
      const { observesOn, ...done } = await takeOver(since, caller);
      return { ...answered(done), observesOn };
    },
  });
}

function answered({ tookOver, resumed }: TookOver): Omit<z.output<typeof tookOverAnswer>, 'observesOn'> {
  const { moved, skipped, unplannable, runs } = resumed;
  return {
    ...answeredTakeOver(tookOver),
    ...{ moved, skipped, unknown: runs.ended, asked: runs.asked, left: runs.left },
    notMoved: unplannable.map(({ scheduleId, error }) => ({ scheduleId, error: reasonOf(error) })),
  };
}
