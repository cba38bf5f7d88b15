import type { z } from 'zod';
import { isoInstant } from '../../core/instant.ts';
import type { Maintenance } from '../../core/maintenance.ts';
import { startMaintenance, stopMaintenance } from '../../operations/maintenance-changes.ts';
import { readMaintenance } from '../../store/maintenance/maintenance-row.ts';
import { auditorFor } from '../../store/audit/record-audit.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { TAGS } from '../http/plugins/openapi.ts';
import { invalid } from '../http/problem.ts';
import { BODY_PROBLEMS, json, problems } from '../http/response-schemas.ts';
import { isoOrNull } from '../schedules/answers.ts';
import { maintenanceAnswer, maintenanceInput } from './schemas.ts';

const tags = [TAGS.instances];

export function addMaintenanceRoutes(api: Api, { database, learnMaintenance }: ApiDeps): void {
  api.get(
    '/maintenance',
    {
      config: { role: 'viewer' },
      schema: {
        operationId: 'getMaintenance',
        summary: 'Whether maintenance is on, for all instances',
        tags,
        response: { 200: json('As it is now', maintenanceAnswer), ...problems(400) },
      },
    },
    async () => answer(await database.run(readMaintenance)),
  );
  api.post(
    '/maintenance',
    {
      config: { role: 'admin', audits: ['maintenance.on', 'maintenance.off'] },
      schema: {
        operationId: 'setMaintenance',
        summary:
          'Begin maintenance, replace what was said of it, or end it; in force on all instances within 5 s',
        tags,
        body: maintenanceInput,
        response: { 200: json('As it is now', maintenanceAnswer), ...problems(...BODY_PROBLEMS, 422) },
      },
    },
    async ({ body: { on, until, reason, dispatch }, caller }) => {
      const auditor = auditorFor(caller);
      const begun = on ? await startMaintenance(database, { until, reason, dispatch }, auditor) : null;
      if (on && !begun) throw invalid([{ path: '/until', message: 'must be in the future' }], 422);
      if (!on) await stopMaintenance(database, auditor);
      learnMaintenance();
      return answer(begun);
    },
  );
}

function answer(maintenance: Maintenance | null): z.output<typeof maintenanceAnswer> {
  if (!maintenance) return { on: false, reason: null, until: null, dispatch: 'continue', since: null };
  const { since, until, reason, dispatch } = maintenance;
  return { on: true, reason, until: isoOrNull(until), dispatch, since: isoInstant(since) };
}
