import type { OneOffRun } from '../../core/runs/one-off-run.ts';
import { MAX_DEPENDENCIES_PER_CALL } from '../../operations/runs/one-off-links.ts';
import { findRun } from '../../store/runs/search/find-runs.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { audited } from '../audit/audited.ts';
import {
  batchFaults,
  dependencyFaults,
  type OneOffFaults,
  acceptOrRefuse,
  oneOffRun,
} from './one-off-inputs.ts';
import { BATCH_BODY_LIMIT } from '../http/plugins/bodies.ts';
import { type Fault, invalid, unavailable } from '../http/problem.ts';
import { type FileRules, fileRules } from '../targets/secret-files.ts';
import { answerRun } from './answers.ts';
import { TAGS, BODY_PROBLEMS, json, problems } from '../http/response-schemas.ts';
import {
  type OneOffItemInput,
  oneOffBatchAnswer,
  oneOffBatchInput,
  oneOffItemInput,
  oneOffRunInput,
} from './one-off-schemas.ts';
import { run } from './schemas.ts';

const tags = [TAGS.runs];

export function addOneOffRunRoutes(api: Api, deps: ApiDeps): void {
  addOneRoute(api, deps);
  addBatchRoute(api, deps);
}

function addOneRoute(api: Api, deps: ApiDeps): void {
  api.post(
    '/runs',
    {
      config: { role: 'operator', scope: 'itself', audits: ['run.create'], alsoCheck: dependencyFaults },
      schema: {
        operationId: 'createRun',
        summary: 'Have something done once, now or later',
        description:
          'A one-off run: of no schedule, handed to its target as any other is. It may wait for other runs (`dependsOn`).',
        tags,
        body: oneOffRunInput,
        response: {
          200: json('The run that this key made before', run),
          201: json('A new run, not yet handed off', run),
          ...problems(...BODY_PROBLEMS, 422),
        },
      },
    },
    async ({ body, json: sent, caller }, reply) => {
      const faults: OneOffFaults = { invalid: [], impossible: [] };
      const asked = oneOffRun(body, sent?.payloads.get('/payload'), {
        ...{ refs: NO_REFS, faults },
        ...fileRules(deps, caller.scope),
      });
      refuse(faults);
      const [accepted] = await acceptOrRefuse(audited(deps, { caller }), [asked], () => '');
      const stored = accepted && (await deps.database.run((db) => findRun(db, accepted.id, caller.scope)));
      // The run that the key stands for may have been dropped from history since.
      if (!stored) throw unavailable('the run no longer exists; send the request again');
      return reply
        .code(accepted.created ? 201 : 200)
        .header('Location', `/api/v1/runs/${stored.id}`)
        .send(answerRun(stored));
    },
  );
}

const NO_REFS: ReadonlySet<string> = new Set();

function addBatchRoute(api: Api, deps: ApiDeps): void {
  api.post(
    '/runs/batch',
    {
      bodyLimit: BATCH_BODY_LIMIT,
      config: {
        role: 'operator',
        scope: 'itself',
        audits: ['runs.bulk'],
        itemSchema: oneOffItemInput,
        alsoCheck: batchFaults,
      },
      schema: {
        operationId: 'createRuns',
        summary: 'Have up to 1000 things done once, which may depend on each other; all or none',
        description:
          `Items name each other by \`ref\`, in any order; a cycle is refused. At most ${MAX_DEPENDENCIES_PER_CALL} dependencies in all. ` +
          'Up to 16 MiB, and of an item, besides its payload, 2 MiB and 5000 members: more than it can have.',
        tags,
        body: oneOffBatchInput,
        response: {
          200: json('The keys of all items had made these before', oneOffBatchAnswer),
          201: json('Their ids; those of new runs, and those that a key had made before', oneOffBatchAnswer),
          ...problems(...BODY_PROBLEMS, 422),
        },
      },
    },
    async ({ body: { items }, json: sent, caller }, reply) => {
      const rules = fileRules(deps, caller.scope);
      const asked = batchOf(rules, items, sent?.payloads ?? new Map<string, string>());
      const accepted = await acceptOrRefuse(audited(deps, { caller }), asked, (index) => `/items/${index}`);
      return reply
        .code(accepted.some(({ created }) => created) ? 201 : 200)
        .send({ items: items.map(({ ref }, index) => ({ ref, id: accepted[index]?.id ?? '' })) });
    },
  );
}

/** @throws Problem 400, 422 */
function batchOf(
  rules: FileRules,
  items: readonly OneOffItemInput[],
  payloads: ReadonlyMap<string, string>,
): OneOffRun[] {
  const all: OneOffFaults = { invalid: [], impossible: [] };
  const refs = new Set(items.map(({ ref }) => ref));
  const asked = items.map((item, index) => {
    const path = `/items/${index}`;
    const faults: OneOffFaults = { invalid: [], impossible: [] };
    const one = oneOffRun(item, payloads.get(`${path}/payload`), { ...rules, refs, faults });
    const inItem = (fault: Fault) => ({ ...fault, path: path + fault.path });
    all.invalid.push(...faults.invalid.map(inItem));
    all.impossible.push(...faults.impossible.map(inItem));
    return one;
  });
  refuse(all);
  return asked;
}

/** @throws Problem 400, 422 */
function refuse({ invalid: invalidOnes, impossible }: OneOffFaults): void {
  if (invalidOnes.length > 0) throw invalid(invalidOnes);
  if (impossible.length > 0) throw invalid(impossible, 422);
}
