import { z } from 'zod';
import type { Instant } from '../../core/instant.ts';
import type { Schedule } from '../../core/schedules/schedule.ts';
import type { ScheduleChange } from '../../operations/schedule-writes.ts';
import { createPace } from '../../runtime/loop/slices.ts';
import { databaseNow } from '../../postgres/sql/database-now.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { type Outlook, fireFaults, outlookOf } from './fire-faults.ts';
import { BATCH_BODY_LIMIT } from '../http/plugins/bodies.ts';
import { TAGS } from '../http/plugins/openapi.ts';
import { type Fault, invalid } from '../http/problem.ts';
import { itemsSent, repeatedInItems } from '../http/json/repeated.ts';
import { resolveInput } from './inputs.ts';
import { changeOrRefuse } from './writes.ts';
import { BODY_PROBLEMS, json, problems } from '../http/response-schemas.ts';
import { batchInput, itemInput } from './schemas.ts';

type BatchItem = z.output<typeof batchInput>['items'][number];

const batchAnswer = z.object({ created: z.int(), updated: z.int(), unchanged: z.int() });

export function addScheduleBatchRoute(api: Api, deps: ApiDeps): void {
  api.post(
    '/schedules/batch',
    {
      bodyLimit: BATCH_BODY_LIMIT,
      config: {
        role: 'admin',
        itemSchema: itemInput,
        alsoCheck: ({ body }) => repeatedInItems(itemsSent(body), 'id'),
      },
      schema: {
        operationId: 'putSchedules',
        summary: 'Create or replace up to 1000 schedules, all or none',
        description:
          'Up to 16 MiB, and of an item, besides its payload, 2 MiB and 2000 members: more than a schedule can have.',
        tags: [TAGS.schedules],
        body: batchInput,
        response: {
          200: json('What became of them', batchAnswer),
          ...problems(...BODY_PROBLEMS, 422),
        },
      },
    },
    async ({ body: { items }, json: sent, caller: { name: by } }) => {
      const payloads = sent?.payloads ?? new Map<string, string>();
      const outlooks = await lookAhead(deps, items);
      const indexOf = new Map(items.map(({ id }, index) => [id, index]));
      const count = { created: 0, updated: 0, unchanged: 0 };
      const pathOf = (id: string) => `/items/${indexOf.get(id) ?? 0}`;
      const { decided, impossible } = decisions(items, payloads, outlooks);
      const changes = decided.map((change) => ({ ...change, by }));
      for (const { change } of await changeOrRefuse(deps, changes, pathOf, impossible)) count[change] += 1;
      return count;
    },
  );
}

type Decision = Pick<ScheduleChange, 'id' | 'decide'>;

/** Decided one after the other in one transaction; the last one throws what is invalid in any. */
function decisions(
  items: readonly BatchItem[],
  payloads: ReadonlyMap<string, string>,
  outlooks: ReadonlyMap<BatchItem, Outlook>,
) {
  let invalidOnes: Fault[] = [];
  let impossibleOnes: Fault[] = [];
  const decide = (item: BatchItem, index: number, current: Schedule | null, now: Instant) => {
    // The transaction may have been repeated.
    if (index === 0) [invalidOnes, impossibleOnes] = [[], []];
    const { id } = item;
    const path = `/items/${index}`;
    const inItem = (fault: Fault) => ({ ...fault, path: path + fault.path });
    const { definition, faults } = resolveInput(item, payloads.get(`${path}/payload`), current);
    invalidOnes.push(...faults.map(inItem));
    const barred = fireFaults(definition, { id, current, now }, outlooks.get(item));
    impossibleOnes.push(...barred.map(inItem));
    if (index === items.length - 1 && invalidOnes.length > 0) throw invalid(invalidOnes);
    return definition;
  };
  const decided = items.map((item, index): Decision => ({
    id: item.id,
    decide: (current, now) => decide(item, index, current, now),
  }));
  return { decided, impossible: () => impossibleOnes };
}

/** Before the rows are locked, and with others' turns in between: a thousand expressions take their time. */
async function lookAhead(
  { database }: ApiDeps,
  items: readonly BatchItem[],
): Promise<Map<BatchItem, Outlook>> {
  const outlooks = new Map<BatchItem, Outlook>();
  const withCron = items.filter(({ cron }) => cron !== null);
  if (withCron.length === 0) return outlooks;
  const asOf = await database.run((db) => databaseNow(db));
  const pace = createPace();
  for (const item of withCron) {
    await pace();
    outlooks.set(item, outlookOf(item, item.id, asOf));
  }
  return outlooks;
}
