import { setImmediate } from 'node:timers/promises';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { changeSchedules } from '../../flow/schedule-changes.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { isObject } from '../json-body.ts';
import { BATCH_BODY_LIMIT } from '../plugins/bodies.ts';
import { TAGS } from '../plugins/openapi.ts';
import { type Fault, invalid } from '../problem.ts';
import { NEVER_FIRES, neverFires, resolveInput } from '../schedule-input.ts';
import { BODY_PROBLEMS, json, problems } from '../schemas/answers.ts';
import { batchInput } from '../schemas/schedule.ts';
import type { Schedule } from '../../core/schedule.ts';

type BatchItem = z.output<typeof batchInput>['items'][number];

const batchAnswer = z.object({ created: z.int(), updated: z.int(), unchanged: z.int() });

export function addScheduleBatchRoute(api: Api, deps: ApiDeps): void {
  api.post(
    '/schedules/batch',
    {
      bodyLimit: BATCH_BODY_LIMIT,
      config: { alsoCheck: repeatedIds },
      schema: {
        operationId: 'putSchedules',
        summary: 'Create or replace up to 1000 schedules, all or none',
        tags: [TAGS.schedules],
        body: batchInput,
        response: {
          200: json('What became of them', batchAnswer),
          ...problems(...BODY_PROBLEMS, 422),
        },
      },
    },
    async ({ body: { items }, json: sent }) => {
      const payloads = sent?.payloads ?? new Map<string, string>();
      const count = { created: 0, updated: 0, unchanged: 0 };
      for (const { change } of await changeSchedules(deps, await decisions(items, payloads)))
        count[change] += 1;
      return count;
    },
  );
}

/** Decided one after the other in one transaction; the last one throws what is wrong with any. */
async function decisions(items: readonly BatchItem[], payloads: ReadonlyMap<string, string>) {
  const barren = await neverFiring(items);
  let invalidOnes: Fault[] = [];
  let impossibleOnes: Fault[] = [];
  const decide = (item: BatchItem, index: number, current: Schedule | null) => {
    // The transaction may have been repeated.
    if (index === 0) [invalidOnes, impossibleOnes] = [[], []];
    const path = `/items/${index}`;
    const { definition, faults } = resolveInput(item, payloads.get(`${path}/payload`), current);
    for (const fault of faults) invalidOnes.push({ ...fault, path: path + fault.path });
    if (barren.has(item) && neverFires(definition, current)) {
      impossibleOnes.push({ path: `${path}/cron`, message: NEVER_FIRES });
    }
    if (index === items.length - 1 && invalidOnes.length > 0) throw invalid(invalidOnes);
    if (index === items.length - 1 && impossibleOnes.length > 0) throw invalid(impossibleOnes, 422);
    return definition;
  };
  return items.map((item, index) => ({
    id: item.id,
    decide: (current: Schedule | null) => decide(item, index, current),
  }));
}

const SLICE = 10;

/** Found before the rows are locked, and in slices: a thousand expressions take their time. */
async function neverFiring(items: readonly BatchItem[]): Promise<Set<BatchItem>> {
  const found = new Set<BatchItem>();
  for (const [index, item] of items.entries()) {
    if (index % SLICE === SLICE - 1) await setImmediate();
    if (neverFires(item, null)) found.add(item);
  }
  return found;
}

function repeatedIds({ body }: FastifyRequest): Fault[] {
  const items = isObject(body) ? body['items'] : undefined;
  if (!Array.isArray(items)) return [];
  const first = new Map<unknown, number>();
  return items.flatMap((item: unknown, index) => {
    const id = isObject(item) ? item['id'] : undefined;
    if (id === undefined) return [];
    const earlier = first.get(id);
    if (earlier === undefined) first.set(id, index);
    return earlier === undefined
      ? []
      : [{ path: `/items/${index}/id`, message: `is the id of item ${earlier} too` }];
  });
}
