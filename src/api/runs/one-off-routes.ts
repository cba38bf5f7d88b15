import type { Batch, OneOffRun } from '../../core/runs/one-off-run.ts';
import { MAX_DEPENDENCIES_PER_CALL } from '../../operations/runs/one-off-drafts.ts';
import { isoInstant } from '../../core/instant.ts';
import { findBatch } from '../../store/runs/run-tags.ts';
import { findRun } from '../../store/runs/search/find-runs.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { audited } from '../audit/entries.ts';
import { acceptOrRefuse, batchFaults, dependencyFaults, type OneOffFaults, oneOffRun } from './one-off-inputs.ts';
import { BATCH_BODY_LIMIT } from '../http/plugins/bodies.ts';
import { type Fault, invalid, noSuch, unavailable } from '../http/problem.ts';
import { type FileRules, fileRules } from '../targets/secret-files.ts';
import { answerRun, run } from './answers.ts';
import { addRoute, json, TAGS } from '../http/routes.ts';
import {
  batchAnswer,
  batchIdParams,
  besideRuns,
  oneOffBatchAnswer,
  oneOffBatchInput,
  type OneOffItemInput,
  oneOffItemInput,
  oneOffRunInput,
} from './one-off-schemas.ts';

const tags = [TAGS.runs];

export function addOneOffRunRoutes(api: Api, deps: ApiDeps): void {
  addOneRoute(api, deps);
  addBatchRoute(api, deps);
  addGetBatchRoute(api, deps);
}

function addOneRoute(api: Api, deps: ApiDeps): void {
  addRoute(api, {
    route: 'POST /runs',
    operationId: 'createRun',
    config: { role: 'operator', scope: 'itself', audits: ['run.create'], alsoCheck: dependencyFaults },
    summary: 'Have something done once, now or later',
    description:
      'A one-off run: of no schedule, handed to its target as any other is. It may wait for other runs (`dependsOn`).',
    tags,
    body: oneOffRunInput,
    answers: {
      200: json('The run that this key made before', run),
      201: json('A new run, not yet handed off', run),
    },
    refusals: [422],
    handler: async ({ body, json: sent, caller }, reply) => {
      const faults: OneOffFaults = { invalid: [], impossible: [] };
      const asked = oneOffRun(body, sent?.payloads.get('/payload'), {
        refs: NO_REFS,
        faults,
        ...fileRules(deps, caller.scope, caller.role),
      });
      refuse(faults);
      const { runs } = await acceptOrRefuse(audited(deps, { caller }), [asked], null);
      const [accepted] = runs;
      const stored = accepted && (await deps.database.run((db) => findRun(db, accepted.id, caller.scope)));
      // The run that the key stands for may have been dropped from history since.
      if (!stored) throw unavailable('the run no longer exists; send the request again');
      return reply
        .code(accepted.created ? 201 : 200)
        .header('Location', `/api/v1/runs/${stored.id}`)
        .send(answerRun(stored));
    },
  });
}

const NO_REFS: ReadonlySet<string> = new Set();

function addBatchRoute(api: Api, deps: ApiDeps): void {
  addRoute(api, {
    route: 'POST /runs/batch',
    operationId: 'createRuns',
    config: {
      role: 'operator',
      scope: 'itself',
      audits: ['run.create'],
      itemSchema: oneOffItemInput,
      besideItems: besideRuns,
      alsoCheck: batchFaults,
    },
    bodyLimit: BATCH_BODY_LIMIT,
    summary: 'Have up to 1000 things done once, which may depend on each other; all or none',
    description:
      `Items name each other by \`ref\`, in any order; a cycle is refused. At most ${MAX_DEPENDENCIES_PER_CALL} dependencies in all. ` +
      'The new runs are one batch (`GET /batches/{batchId}`); what a key stands for stays in the batch that it was made in. ' +
      'Up to 16 MiB, and of an item, besides its payload, 2 MiB and 5000 members: more than it can have.',
    tags,
    body: oneOffBatchInput,
    answers: {
      200: json('The keys of all items had made these before', oneOffBatchAnswer),
      201: json('Their ids; those of new runs, and those that a key had made before', oneOffBatchAnswer),
    },
    refusals: [422],
    handler: async ({ body: { items, ...batch }, json: sent, caller }, reply) => {
      const payloads = sent?.payloads ?? new Map<string, string>();
      const asked = batchOf(items, { ...fileRules(deps, caller.scope, caller.role), ...batch, payloads });
      const { runs, batchId } = await acceptOrRefuse(audited(deps, { caller }), asked, batch);
      return reply
        .code(runs.some(({ created }) => created) ? 201 : 200)
        .send({ batchId, items: items.map(({ ref }, index) => ({ ref, id: runs[index]?.id ?? '' })) });
    },
  });
}

interface BatchContext extends FileRules, Batch {
  payloads: ReadonlyMap<string, string>;
}

/** @throws Problem 400, 422 */
function batchOf(items: readonly OneOffItemInput[], { payloads, ...given }: BatchContext): OneOffRun[] {
  const all: OneOffFaults = { invalid: [], impossible: [] };
  const refs = new Set(items.map(({ ref }) => ref));
  const asked = items.map((item, index) => {
    const path = `/items/${index}`;
    const faults: OneOffFaults = { invalid: [], impossible: [] };
    const one = oneOffRun(item, payloads.get(`${path}/payload`), { ...given, refs, faults });
    const inItem = (fault: Fault) => ({ ...fault, path: path + fault.path });
    all.invalid.push(...faults.invalid.map(inItem));
    all.impossible.push(...faults.impossible.map(inItem));
    return one;
  });
  refuse(all);
  return asked;
}

function addGetBatchRoute(api: Api, { database }: ApiDeps): void {
  addRoute(api, {
    route: 'GET /batches/:batchId',
    operationId: 'getBatch',
    config: { role: 'viewer', scope: 'itself' },
    summary: 'The runs of a batch, and what each waits for, as long as one of them is kept',
    tags,
    params: batchIdParams,
    answers: { 200: json('The batch', batchAnswer) },
    refusals: [404],
    handler: async ({ params: { batchId }, caller: { scope } }) => {
      const batch = await database.run((db) => findBatch(db, batchId, scope));
      if (batch === null) throw noSuch(`batch ${batchId}`);
      return { ...batch, createdAt: isoInstant(batch.createdAt) };
    },
  });
}

/** @throws Problem 400, 422 */
function refuse({ invalid: invalidOnes, impossible }: OneOffFaults): void {
  if (invalidOnes.length > 0) throw invalid(invalidOnes);
  if (impossible.length > 0) throw invalid(impossible, 422);
}
