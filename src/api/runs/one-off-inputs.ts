import { type Scope, beyondScope, owns, scopeText, sees } from '../../core/access/scope.ts';
import { type Batch, type OneOffHandoff, type OneOffRun, definitionUid } from '../../core/runs/one-off-run.ts';
import type { Target } from '../../core/schedules/schedule.ts';
import type { SecretFile } from '../../core/secrets/sealed-values.ts';
import { type AcceptedRuns, acceptRuns } from '../../operations/runs/submit-one-off-runs.ts';
import { CannotAccept } from '../../operations/runs/one-off-drafts.ts';
import { type Fault, invalid, MAX_FAULTS } from '../http/problem.ts';
import { MAX_LABELS, RUN_ID } from '../http/common-schemas.ts';
import { type OneOffItemInput, type OneOffRunInput, MAX_DEPENDENCIES } from './one-off-schemas.ts';
import { bodySizeFaults } from '../targets/body-and-outcome.ts';
import { unmaskTarget, sealed } from '../targets/inputs.ts';
import type { FileRules } from '../targets/secret-files.ts';
import type { FastifyRequest } from 'fastify';
import { yieldToEventLoop } from '../../runtime/loop/slices.ts';
import { isObject } from '../http/json/json-body.ts';
import { itemsSent, repeatedInItems } from '../http/request-checks.ts';

/** Faults of what was sent, to be answered with 400 or 422. */
export interface OneOffFaults {
  invalid: Fault[];
  impossible: Fault[];
}

interface OneOffContext extends FileRules {
  refs: ReadonlySet<string>;
  faults: OneOffFaults;
  /** Of its batch. */
  labels?: Batch['labels'];
}

/**
 * `payload` is the source text that was sent; JSON's null is no payload. Values that cannot be used as sent are added
 * to `faults`.
 */
export function oneOffRun(
  input: OneOffRunInput | OneOffItemInput,
  payload: string | undefined,
  { refs, faults, labels: ofBatch = {}, ...rules }: OneOffContext,
): OneOffRun {
  const { key, runAt, onDependencyFailure, priority, limit, expiresAfterSeconds } = input;
  const { retry, timeoutSeconds, completion, completionTimeoutSeconds, delivery } = input;
  // There is no stored definition with secret values to keep, so all values are those that were sent.
  const found = { faults: faults.invalid, impossible: faults.impossible };
  const target = unmaskTarget(input.target, null, found, rules) as Target<string | SecretFile>;
  faults.invalid.push(...bodySizeFaults(input.target, payload));
  const given: OneOffHandoff<string | SecretFile> = {
    target,
    retry,
    timeoutSeconds,
    completion,
    completionTimeoutSeconds,
    delivery,
  };
  const uid = definitionUid(given, rules.secrets);
  faults.impossible.push(...ofOthers(input, rules.scope));
  const labels = { ...ofBatch, ...input.labels };
  faults.invalid.push(...tooManyLabels(labels));
  return {
    ref: 'ref' in input ? input.ref : null,
    handoff: { ...given, target: sealed(target, { ...rules, uid }, null, faults.impossible) },
    definitionUid: uid,
    payload: payload === undefined || payload === 'null' ? null : payload,
    key,
    runAt,
    dependsOn: input.dependsOn.map((entry) => dependencyNamed(entry, refs)),
    onDependencyFailure,
    priority,
    limit,
    expiresAfterSeconds,
    labels,
  };
}

function tooManyLabels(labels: Batch['labels']): Fault[] {
  if (Object.keys(labels).length <= MAX_LABELS) return [];
  return [{ path: '/labels', message: `must be at most ${MAX_LABELS}, with those of the batch` }];
}

/** A one-off run belongs to whose scope its key is in. */
function ofOthers({ key, target }: Pick<OneOffRunInput, 'key' | 'target'>, scope: Scope): Fault[] {
  if (scope === null) return [];
  const prefixes = scopeText(scope);
  const ofKey = key !== null && owns(scope, key);
  const ofQueue = target.type !== 'pull' || sees(scope, target.queue);
  return [
    ...(ofKey ? [] : [{ path: '/key', message: `must begin with a prefix of your scope: ${prefixes}` }]),
    ...(ofQueue ? [] : [{ path: '/target/queue', message: beyondScope(scope) }]),
  ];
}

/**
 * `batch`: the body has several runs.
 * @throws Problem 422 with all faults of all runs
 */
export async function acceptOrRefuse(
  deps: Parameters<typeof acceptRuns>[0],
  asked: readonly OneOffRun[],
  batch: Batch | null,
): Promise<AcceptedRuns> {
  try {
    return await acceptRuns(deps, asked, batch);
  } catch (error) {
    if (!(error instanceof CannotAccept)) throw error;
    throw invalid(
      error.faults.map(({ index, path, message }) => ({
        path: batch ? `/items/${index}${path}` : path,
        message,
      })),
      422,
    );
  }
}

/** For `alsoCheck`: the dependencies of a one-off run. */
export function dependencyFaults({ body }: FastifyRequest): Fault[] {
  return faultsOf(body, '', new Set());
}

/** For `alsoCheck`: the refs, keys and dependencies of the items of a batch. */
export async function batchFaults({ body }: FastifyRequest): Promise<Fault[]> {
  const items = itemsSent(body);
  const faults = [...repeatedInItems(items, 'ref'), ...repeatedInItems(items, 'key')];
  const refs = refsOf(items);
  for (const [index, item] of items.entries()) {
    if (faults.length > MAX_FAULTS) break;
    await yieldToEventLoop();
    faults.push(...faultsOf(item, `/items/${index}`, refs));
  }
  return faults;
}

function refsOf(items: readonly unknown[]): Set<unknown> {
  return new Set(items.map((item) => (isObject(item) ? item['ref'] : undefined)));
}

/** An entry that is no ref is the id of a run. */
function dependencyNamed(entry: string, refs: ReadonlySet<unknown>): string {
  return refs.has(entry) ? entry : entry.toLowerCase();
}

function faultsOf(input: unknown, path: string, refs: ReadonlySet<unknown>): Fault[] {
  const entries: unknown = isObject(input) ? input['dependsOn'] : undefined;
  if (!Array.isArray(entries) || entries.length > MAX_DEPENDENCIES) return [];
  const first = new Map<string, number>();
  return entries.flatMap((entry: unknown, index): Fault[] => {
    if (typeof entry !== 'string') return [];
    const at = `${path}/dependsOn/${index}`;
    if (!refs.has(entry) && !RUN_ID.test(entry)) {
      const known = path === '' ? 'is not the id of a run' : 'is neither a ref of this call nor the id of a run';
      return [{ path: at, message: `${known} (a UUID)` }];
    }
    const named = dependencyNamed(entry, refs);
    const earlier = first.get(named);
    if (earlier === undefined) first.set(named, index);
    return earlier === undefined ? [] : [{ path: at, message: `repeats dependsOn/${earlier}` }];
  });
}
