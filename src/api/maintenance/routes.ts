import { z } from 'zod';
import type { InstallationState } from '../../core/installation.ts';
import { isoOrNull } from '../../core/instant.ts';
import { startMaintenance, stopMaintenance } from '../../operations/maintenance-changes.ts';
import { readInstallation } from '../../store/instances/installation-row.ts';
import { auditorFor } from '../../store/audit/audit-rows.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { invalid } from '../http/problem.ts';
import { addRoute, json, TAGS } from '../http/routes.ts';
import { NOT_GIVEN, where } from '../document/kinds.ts';
import { answeredInstant, instant, text } from '../http/common-schemas.ts';

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
    since: z.unknown().optional().meta({ description: 'Read only, ignored.' }),
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
    on: z.boolean().meta({ description: 'While it is on, no instance plans a schedule.' }),
    reason: z.string().nullable(),
    until: answeredInstant.nullable(),
    dispatch,
    since: answeredInstant.nullable().meta({ description: 'When it began.' }),
  })
  .meta({ id: 'Maintenance' });

const tags = [TAGS.instances];

export function addMaintenanceRoutes(api: Api, { database, learnInstallation }: ApiDeps): void {
  addRoute(api, {
    ...{ route: 'GET /maintenance', operationId: 'getMaintenance' },
    config: { role: 'viewer', scope: 'nameless' },
    summary: 'Whether maintenance is on, for all instances',
    ...{ tags, answers: { 200: json('As it is now', maintenanceAnswer) } },
    handler: async () => answer(await database.run(readInstallation)),
  });
  addRoute(api, {
    ...{ route: 'POST /maintenance', operationId: 'setMaintenance' },
    config: { role: 'admin', scope: 'unscoped', audits: ['maintenance.on', 'maintenance.off'] },
    summary:
      'Begin maintenance, replace what was said of it, or end it; in force on all instances within 5 s',
    ...{ tags, body: maintenanceInput, answers: { 200: json('As it is now', maintenanceAnswer) } },
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
