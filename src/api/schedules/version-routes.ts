import { z } from 'zod';
import { uidsOf } from '../../store/schedules/search/find-schedules.ts';
import { pageRoom } from '../../postgres/sql/lists.ts';
import { type ScheduleVersion, listVersions } from '../../store/schedules/schedule-versions.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { cursorIn, limitQuery, pageOf, pageSchema, versionCursor } from '../http/pages.ts';
import { noSuch } from '../http/problem.ts';
import { rawJsonOrNull } from '../http/json/raw-json.ts';
import { answerDefinition } from './answers.ts';
import { addRoute, json, TAGS } from '../http/routes.ts';
import { answeredInstant, scheduleIdParams, scheduleIdText } from '../http/common-schemas.ts';
import { answersOf } from '../http/stored-answers.ts';
import { definitionAnswer } from './schemas.ts';

export const scheduleVersion = z
  .object({
    version: z.int(),
    at: answeredInstant,
    by: z.string().nullable().meta({ description: 'Who wrote it; null: a caller without a token.' }),
    change: z.enum(['created', 'updated', 'deleted']),
    schedule: z
      .object({ id: scheduleIdText, ...definitionAnswer })
      .meta({ id: 'VersionedSchedule', description: 'As it was from then on; of `deleted`: until then.' }),
  })
  .meta({ id: 'ScheduleVersion' });

const versionsQuery = z.strictObject({ limit: limitQuery, cursor: versionCursor.optional() });

export function addVersionsRoute(api: Api, { database }: ApiDeps): void {
  addRoute(api, {
    ...{ route: 'GET /schedules/:id/versions', operationId: 'listVersions' },
    config: { role: 'viewer', scope: { name: 'schedule' } },
    summary: 'Every write of a schedule, newest first; also of a deleted one',
    ...{ tags: [TAGS.schedules], params: scheduleIdParams, querystring: versionsQuery },
    ...{ answers: { 200: json('A page of versions', pageSchema(scheduleVersion)) }, refusals: [404] },
    handler: async ({ params: { id }, query: { limit, cursor }, caller: { scope } }) => {
      const before = cursorIn(cursor, id);
      const room = pageRoom();
      const rows = await database.run(async (db) => {
        const found = await listVersions(db, id, { before, limit: limit + 1, room });
        if (found.length === 0 && (await uidsOf(db, id, scope)).length === 0) throw noSuch(`schedule ${id}`);
        return found;
      });
      return pageOf(
        { rows, limit, room },
        (row) => answerVersion(id, row),
        ({ at, uid, version }) => ({ of: id, at, uid, version }),
      );
    },
  });
}

const answered = answersOf(scheduleVersion);

function answerVersion(id: string, { definition, ...version }: ScheduleVersion) {
  const payload = rawJsonOrNull(definition.payload);
  return answered({ ...version, schedule: { id, ...answerDefinition(definition), payload } });
}
