import { z } from 'zod';
import type { Caller } from '../../core/access/roles.ts';
import type { Schedule } from '../../core/schedules/schedule.ts';
import type { ScheduleChangeDeps } from '../../operations/schedules/schedule-changes.ts';
import type { ScheduleChange } from '../../operations/schedules/schedule-writes.ts';
import { createPace } from '../../runtime/loop/slices.ts';
import { databaseNow } from '../../postgres/sql/rows.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { type Outlook, fireFaults, lookAhead, outlookOf } from './fire-faults.ts';
import { BATCH_BODY_LIMIT } from '../http/plugins/bodies.ts';
import { type Fault, invalid } from '../http/problem.ts';
import { itemsSent, repeatedInItems } from '../http/request-checks.ts';
import { encryptedAnew, pauseFaults, resolveInput } from './inputs.ts';
import { changeOrRefuse, diffOf, foreignItems, noteMany, queueFaults, scheduleDiff } from './writes.ts';
import { addRoute, json, TAGS } from '../http/routes.ts';
import { type FileRules, fileRules } from '../targets/secret-files.ts';
import { batchInput, besideItems, itemInput } from './schemas.ts';
import { setEnabledOfMatching } from '../../operations/schedules/bulk-schedules.ts';
import { audited } from '../audit/entries.ts';
import { NOT_GIVEN, where } from '../document/kinds.ts';
import { bulkAnswer, dryRunInput, filterLabels, filterWords, namesSomething } from '../http/filter-schemas.ts';
import { ALWAYS, instant, scheduleStatus, text } from '../http/common-schemas.ts';

type BatchItem = z.output<typeof batchInput>['items'][number];

const batchAnswer = z.object({
  created: z.int(),
  updated: z.int(),
  unchanged: z.int(),
  changes: z.array(scheduleDiff).optional().describe('Of a dry run: for each item, in their order.'),
});

export function addScheduleBatchRoute(api: Api, deps: ApiDeps): void {
  addRoute(api, {
    route: 'POST /schedules/batch',
    operationId: 'putSchedules',
    config: {
      role: 'admin',
      scope: 'itself',
      audits: ['schedules.bulk'],
      itemSchema: itemInput,
      besideItems,
      alsoCheck: ({ body }) => repeatedInItems(itemsSent(body), 'id'),
    },
    bodyLimit: BATCH_BODY_LIMIT,
    summary: 'Create or replace up to 1000 schedules, all or none',
    description:
      'Up to 16 MiB, and of an item, besides its payload, 2 MiB and 5000 members: more than a schedule can have.',
    tags: [TAGS.schedules],
    body: batchInput,
    answers: { 200: json('What became of them', batchAnswer) },
    refusals: [422],
    handler: async ({ body, json: sent, caller }) =>
      putBatch({ ...deps, note: noteMany(caller) }, { ...body, caller }, sent?.payloads ?? new Map<string, string>()),
  });
}

async function putBatch(
  deps: ApiDeps & ScheduleChangeDeps,
  { items, dryRun, caller }: z.output<typeof batchInput> & { caller: Caller },
  payloads: ReadonlyMap<string, string>,
): Promise<z.output<typeof batchAnswer>> {
  const { name: by, scope } = caller;
  const foreign = foreignItems(items, scope);
  if (foreign.length > 0) throw invalid(foreign, 422);
  const outlooks = await outlooksOf(deps, items);
  const indexOf = new Map(items.map(({ id }, index) => [id, index]));
  const pathOf = (id: string) => `/items/${indexOf.get(id) ?? 0}`;
  const rules = fileRules(deps, scope);
  const { decided, impossible, before } = decisions(items, payloads, {
    outlooks,
    rules,
    dryRun,
  });
  const changes = decided.map((change) => ({ ...change, by, scope }));
  const changed = await changeOrRefuse(deps, changes, pathOf, impossible, dryRun);
  const count = { created: 0, updated: 0, unchanged: 0 };
  for (const { change } of changed) count[change] += 1;
  if (!dryRun) return count;
  return { ...count, changes: changed.map((one) => diffOf(before.get(one.schedule.id) ?? null, one)) };
}

type Decision = Pick<ScheduleChange, 'id' | 'calendars' | 'decide'>;

interface Deciding {
  outlooks: ReadonlyMap<BatchItem, Outlook>;
  rules: FileRules;
  dryRun: boolean;
}

type Given = Omit<Parameters<typeof fireFaults>[1], 'id'>;

/** All items are decided one after the other in one transaction; the last one throws all faults. */
function decisions(
  items: readonly BatchItem[],
  payloads: ReadonlyMap<string, string>,
  { outlooks, rules, dryRun }: Deciding,
) {
  let invalidOnes: Fault[] = [];
  let impossibleOnes: Fault[] = [];
  /** The schedules as they were, by id. */
  const before = new Map<string, Schedule | null>();
  const decide = (item: BatchItem, index: number, uid: string, given: Given) => {
    // The transaction may have been repeated.
    if (index === 0) [invalidOnes, impossibleOnes] = [[], []];
    const { id } = item;
    const { current } = given;
    before.set(id, current);
    const path = `/items/${index}`;
    const inItem = (fault: Fault) => ({ ...fault, path: path + fault.path });
    const resolved = resolveInput(item, payloads.get(`${path}/payload`), current, { ...rules, uid });
    const { definition, faults } = resolved;
    invalidOnes.push(...faults.map(inItem));
    const barred = [
      ...resolved.impossible,
      ...fireFaults(definition, { id, ...given }, outlooks.get(item)),
      ...pauseFaults(resolved, given),
      ...queueFaults(definition, current, rules.scope),
    ];
    impossibleOnes.push(...barred.map(inItem));
    if (index === items.length - 1 && invalidOnes.length > 0) throw invalid(invalidOnes);
    // If unchanged values were encrypted anew, a dry run would report them as changes.
    return dryRun ? definition : encryptedAnew(definition, current, rules.secrets);
  };
  const decided = items.map((item, index): Decision => ({
    id: item.id,
    calendars: item.exclude?.calendars ?? [],
    decide: (current, now, calendars, uid) => decide(item, index, uid, { current, now, calendars }),
  }));
  return { decided, impossible: () => impossibleOnes, before };
}

/**
 * Computed before the rows are locked, and in slices: a thousand expressions take time. Not for schedules that name
 * calendars: the content of these is certain only under their locks.
 */
async function outlooksOf({ database }: ApiDeps, items: readonly BatchItem[]): Promise<Map<BatchItem, Outlook>> {
  const outlooks = new Map<BatchItem, Outlook>();
  const withCron = items.filter(({ cron, exclude }) => cron !== null && (exclude?.calendars ?? []).length === 0);
  if (withCron.length === 0) return outlooks;
  const asOf = await database.run((db) => databaseNow(db));
  const pace = createPace();
  for (const item of withCron) {
    await lookAhead(item, item.id, pace);
    await pace();
    outlooks.set(item, outlookOf(item, item.id, asOf));
  }
  return outlooks;
}

const scheduleFilter = z
  .strictObject({
    label: filterLabels,
    q: text(1000).min(1).optional().describe('Part of the id or the description, in any letter case.'),
    status: filterWords(scheduleStatus),
    late: z.boolean().optional(),
  })
  .superRefine(namesSomething, ALWAYS)
  .meta({
    id: 'ScheduleFilter',
    description: 'As in `GET /schedules`: all that is named must hold.',
    minProperties: 1,
  });

const bulkInput = z
  .strictObject({
    action: z.enum(['pause', 'resume']),
    filter: scheduleFilter,
    reason: text(1000).nullable().default(null).describe('Only with `pause`: becomes the `pauseReason` of each.'),
    until: instant
      .nullable()
      .default(null)
      .describe('Only with `pause`: becomes the `pauseUntil` of each; in the future.'),
    dryRun: dryRunInput,
  })
  .superRefine(({ action, reason, until }, context) => {
    if (action !== 'resume') return;
    for (const [name, value] of Object.entries<unknown>({ reason, until })) {
      // Undefined if the filter itself has faults.
      if (value === null || value === undefined) continue;
      context.addIssue({ code: 'custom', path: [name], message: 'is allowed only with the action pause' });
    }
  }, ALWAYS)
  .meta(where('action', [{ is: 'pause' }, { is: 'resume', properties: { reason: NOT_GIVEN, until: NOT_GIVEN } }]));

export function addScheduleBulkRoute(api: Api, deps: ApiDeps): void {
  addRoute(api, {
    route: 'POST /schedules/bulk',
    operationId: 'actOnSchedules',
    config: { role: 'admin', scope: 'itself', pace: 'slow', audits: ['schedules.bulk'] },
    summary: 'Pause or resume the schedules that match a filter',
    description:
      'Each schedule as a PATCH of `enabled` would. What is paused already keeps its `pauseReason`; what is enabled ' +
      'already stays as it is.',
    tags: [TAGS.schedules],
    body: bulkInput,
    answers: { 200: json('What became of them', bulkAnswer('schedules', '')) },
    refusals: [422],
    handler: async ({ body: { action, filter, reason, until, dryRun }, caller }) => {
      if (until !== null && until <= (await deps.database.run((db) => databaseNow(db))))
        throw invalid([{ path: '/until', message: 'must be in the future' }], 422);
      const { label: labels, q, status: statuses, late } = filter;
      return setEnabledOfMatching(audited(deps, { caller }), {
        action,
        filter: { scope: caller.scope, labels, text: q, statuses, late },
        reason,
        until,
        dryRun,
        by: caller.name,
      });
    },
  });
}
