import { z } from 'zod';
import type { InstallationState, KnownState } from '../../core/installation.ts';
import { isoOrNull } from '../../core/instant.ts';
import { type TookOver, startMaintenance, stopMaintenance } from '../../operations/installation-changes.ts';
import { reasonOf } from '../../runtime/reason.ts';
import { readInstallation } from '../../store/instances/installation-row.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { answeredInstant, instant, text } from '../http/common-schemas.ts';
import { invalid, Problem } from '../http/problem.ts';
import { addRoute, answersOf, json, READING, TAGS } from '../http/routes.ts';
import { auditorFor } from '../../store/audit/audit-rows.ts';
import { NOT_GIVEN, where } from '../document/kinds.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** A route that changes something, and that an instance which only observes answers as well. */
    alsoObserving?: true;
  }
}

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
  since: answeredInstant.describe('What was due from this moment on is fired.'),
  by: z.string().nullable().describe('The name of the caller.'),
});

const answeredTakeOver = answersOf(takeOverAnswer);

const observingAnswer = z
  .object({
    observing: z.boolean().describe('This instance plans nothing, sends nothing and changes nothing.'),
    because: z.enum(['setting', 'database']).nullable().meta({
      description: '`setting`: FIRELOCK_OBSERVE, of this instance alone. `database`: all its instances do.',
    }),
    since: answeredInstant.nullable().describe('Where the database says so.'),
    reason: z.string().nullable(),
    readOnly: z.boolean().describe('The database accepts no writes: promote it before a take-over.'),
    tookOver: takeOverAnswer.nullable().describe('The last take-over.'),
  })
  .meta({ id: 'Observing' });

export const tookOverAnswer = takeOverAnswer
  .extend({
    moved: z.int().describe('Schedules of which something was due before `since`.'),
    skipped: z.int().describe('Fires due before `since`, recorded as one skipped run a schedule.'),
    notMoved: z
      .array(z.object({ scheduleId: z.string(), error: z.string() }))
      .describe('Schedules whose fires cannot be counted.'),
    unknown: z.int().describe('At-most-once runs that may have been sent: not sent again.'),
    asked: z.int().describe('Runs whose target is asked first whether it has them.'),
    left: z.int().describe('Runs that are sent under their ids.'),
    observesOn: z.boolean().describe('FIRELOCK_OBSERVE is set on the instance that answered: start it without.'),
  })
  .meta({ id: 'TookOver' });

const tags = [TAGS.instances];

export function addObservingRoute(api: Api, { database, installation }: ApiDeps): void {
  addRoute(api, {
    route: 'GET /observing',
    operationId: 'getObserving',
    config: { role: 'viewer', scope: 'nameless' },
    summary: 'Whether this instance only observes, and why',
    tags,
    answers: { 200: json('As it is now', observingAnswer) },
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
    route: 'POST /take-over',
    operationId: 'takeOver',
    config: {
      role: 'admin',
      scope: 'unscoped',
      pace: 'slow',
      alsoObserving: true,
      audits: ['installation.take-over'],
    },
    summary: 'Take over from another installation: fire what was due from a moment on',
    description:
      'Refused while an instance works on this database, by its heartbeats, and while the database is read only.',
    tags,
    body: z.strictObject({
      since: instant.describe('In the past. What was due before is skipped.'),
    }),
    answers: { 200: json('What was done', tookOverAnswer) },
    refusals: [409],
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
    moved,
    skipped,
    unknown: runs.ended,
    asked: runs.asked,
    left: runs.left,
    notMoved: unplannable.map(({ scheduleId, error }) => ({ scheduleId, error: reasonOf(error) })),
  };
}

const dispatch = z.enum(['continue', 'hold']).meta({
  description:
    '`continue`: runs that are recorded already, retries, manual fires and one-off runs are handed off. `hold`: they wait for the end.',
});

const ONLY_WHILE_ON = 'is allowed only where `on` is true';

/** A caller can edit the answer of GET and send it back. */
const maintenanceInput = z
  .strictObject({
    on: z.boolean(),
    reason: text(1000).nullable().default(null).meta({ example: 'the warehouse database moves' }),
    until: instant.nullable().default(null).meta({
      description: 'It ends by itself at this moment; null: it lasts until it is ended.',
    }),
    dispatch: dispatch.default('continue'),
    since: z.unknown().optional().describe('Read only, ignored.'),
  })
  .superRefine(({ on, reason, until, dispatch }, context) => {
    if (on) return;
    const given = { reason: reason !== null, until: until !== null, dispatch: dispatch === 'hold' };
    for (const [name, isGiven] of Object.entries(given))
      if (isGiven) context.addIssue({ code: 'custom', path: [name], message: ONLY_WHILE_ON });
  })
  .meta({
    id: 'MaintenanceRequest',
    ...where('on', [
      { is: true },
      { is: false, properties: { reason: NOT_GIVEN, until: NOT_GIVEN, dispatch: { const: 'continue' } } },
    ]),
  });

export const maintenanceAnswer = z
  .object({
    on: z.boolean().describe('While it is on, no instance plans a schedule.'),
    reason: z.string().nullable(),
    until: answeredInstant.nullable(),
    dispatch,
    since: answeredInstant.nullable().describe('When it began.'),
  })
  .meta({ id: 'Maintenance' });

export function addMaintenanceRoutes(api: Api, { database, learnInstallation }: ApiDeps): void {
  addRoute(api, {
    route: 'GET /maintenance',
    operationId: 'getMaintenance',
    config: { role: 'viewer', scope: 'nameless' },
    summary: 'Whether maintenance is on, for all instances',
    tags,
    answers: { 200: json('As it is now', maintenanceAnswer) },
    handler: async () => answer(await database.run(readInstallation)),
  });
  addRoute(api, {
    route: 'POST /maintenance',
    operationId: 'setMaintenance',
    config: { role: 'admin', scope: 'unscoped', audits: ['maintenance.on', 'maintenance.off'] },
    summary: 'Begin maintenance, replace what was said of it, or end it; in force on all instances within 5 s',
    tags,
    body: maintenanceInput,
    answers: { 200: json('As it is now', maintenanceAnswer) },
    refusals: [422],
    handler: async ({ body: { on, until, reason, dispatch }, caller }) => {
      const auditor = auditorFor(caller);
      const mode = dispatch === 'hold' ? 'holds' : 'plansNothing';
      const begun = on ? await startMaintenance(database, { mode, until, reason }, auditor) : null;
      if (on && !begun) throw invalid([{ path: '/until', message: 'must be in the future' }], 422);
      if (!on) await stopMaintenance(database, auditor);
      learnInstallation();
      return begun ? answer(begun) : OFF;
    },
  });
}

const OFF = { on: false, reason: null, until: null, dispatch: 'continue', since: null } as const;

function answer({ mode, since, until, reason }: InstallationState): z.output<typeof maintenanceAnswer> {
  if (mode === 'works' || mode === 'observes') return OFF;
  const dispatch = mode === 'holds' ? 'hold' : 'continue';
  return { on: true, reason, until: isoOrNull(until), dispatch, since: isoOrNull(since) };
}
