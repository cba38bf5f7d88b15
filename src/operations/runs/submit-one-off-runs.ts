/**
 * Guarantees: one-off runs are recorded all or none, once per key, and each waits for all that it depends on.
 * Transaction: one. It locks the dependencies last, then reads them: ended ones are counted now, later ends see the new edges.
 * If the process dies here: all are there or none; any instance may claim them.
 */
import { NO_SHARES } from '../../core/access/scope.ts';
import { laneInScope } from '../../core/runs/run-lane.ts';
import type { Instant } from '../../core/instant.ts';
import { type Batch, bodyHashOf, type OneOffRun } from '../../core/runs/one-off-run.ts';
import { isEnd, randomRunId } from '../../core/runs/run.ts';
import { newRun } from '../../core/runs/new-run.ts';
import type { RunRecord } from '../../core/runs/run-record.ts';
import { PRIORITY_RANK } from '../../core/schedules/schedule.ts';
import type { KeyRing } from '../../core/secrets/key-ring.ts';
import { hasSecrets, sameSecrets } from '../../core/schedules/target-secrets.ts';
import { yieldToEventLoop } from '../../runtime/loop/slices.ts';
import { allWork, wakeFor, type Work } from '../../runtime/loop/wake.ts';
import { databaseNow, NO_SCHEDULE } from '../../postgres/sql/rows.ts';
import { countDependencies } from '../../store/effects/dependents.ts';
import { writeEffects } from '../../store/effects/insert-effects.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { type Edge, lockDependencies, MAX_EDGES_AT_ONCE, recordDependencies } from '../../store/runs/dependencies.ts';
import { ONE_OFF_KEYS, takeKeysUnlessTaken } from '../../store/runs/idempotency-keys.ts';
import { presentAmong, recordRuns, workOfNew } from '../../store/runs/lock-and-save.ts';
import { keepDefinitions, ONE_OFF_VERSION } from '../../store/runs/run-tags.ts';
import { findTargets } from '../../store/runs/search/find-runs.ts';
import { runsSeen } from '../../store/scopes/in-scope.ts';
import type { TargetRegistry } from '../../targets/target.ts';
import { unknownNamesOf } from '../references.ts';
import type { RunActionDeps } from './act-on-runs.ts';
import {
  CannotAccept,
  type Draft,
  type ItemFault,
  type Links,
  linksOf,
  noteCreated,
  refuseUnknown,
  refuseWhatCannotBe,
  tagRuns,
} from './one-off-drafts.ts';

interface OneOffDeps extends RunActionDeps {
  /** Tells whether a key was used with the same secret values before. */
  secrets: KeyRing;
  targets: TargetRegistry;
}

/**
 * Records runs, all or none; answers their ids in the order of the call. A key that was used before with the same body
 * stands for the run that it made. No ref and no key occurs twice, and none occurs twice in one list of dependencies; a
 * ref takes precedence over the id of a run. `batch`: what those that are new have in common; null: one run was asked for alone.
 * @throws CannotAccept, OperationRefused
 */
export async function acceptRuns(
  deps: OneOffDeps,
  asked: readonly OneOffRun[],
  batch: Batch | null = null,
): Promise<AcceptedRuns> {
  refuseWhatCannotBe(asked);
  const { recorded, work, ...accepted } = await deps.database.transaction((tx) => accept(tx, deps, asked, batch));
  if (recorded > 0) deps.events.emit({ type: 'runsAccepted', count: recorded });
  wakeFor(deps.wake, work);
  return accepted;
}

export interface AcceptedRuns {
  runs: { id: string; created: boolean }[];
  /** Of the new runs; if there are none, the one that all runs are in. Null: there is none. */
  batchId: string | null;
}

interface Accepted extends AcceptedRuns {
  recorded: number;
  work: Work;
}

async function accept(
  tx: Transaction,
  deps: OneOffDeps,
  asked: readonly OneOffRun[],
  batch: Batch | null,
): Promise<Accepted> {
  const now = await databaseNow(tx);
  const drafts = asked.map((run): Draft => ({ run, id: randomRunId(run.runAt ?? now), created: true }));
  await takeKeys(tx, deps.secrets, drafts);
  const created = drafts.filter((draft) => draft.created);
  const links = linksOf(drafts, created);
  const { others } = links;
  const { scope } = deps;
  const namingOf = ({ run: { limit, handoff } }: Draft) => ({ limit, ...handoff });
  const unknown = await unknownNamesOf(tx, created, namingOf, scope);
  const there = scope === null ? await presentAmong(tx, others) : await runsSeen(tx, others, scope);
  refuseUnknown(drafts, links, there, unknown);
  deps.openRunCaps?.take(created.map(({ run }) => run.key));
  const toRecord = created.map((draft) => recordOf(deps, draft, links, now));
  await record(tx, created, toRecord);
  await link(tx, created, links);
  const batchId = await tagRuns(tx, drafts, batch, now);
  await noteCreated(tx, deps.auditor, drafts, { batch, batchId });
  // Last, as other transactions may be waiting to end these runs; and read once more, under the locks.
  const dependencies = await lockDependencies(tx, others);
  refuseUnknown(drafts, links, new Set(dependencies.keys()), unknown);
  const released = await countEnded(tx, [...dependencies.values()]);
  const ready = toRecord.filter(({ openDependencies }) => openDependencies === null);
  return {
    runs: drafts.map(({ id, created: isNew }) => ({ id, created: isNew })),
    batchId,
    recorded: toRecord.length,
    work: allWork([released, workOfNew(ready)]),
  };
}

/** Dependencies that ended before they were locked are counted now; if there are very many, an effect counts the rest. */
async function countEnded(tx: Transaction, dependencies: readonly RunRecord[]) {
  const ended = dependencies.filter(({ status }) => isEnd(status));
  const ends = ended.map(({ id: runId, status }) => ({ id: null, runId, status }));
  const counted = await countDependencies(tx, ends);
  const left = ended.filter(({ id }) => counted.unfinished.has(id));
  const effects = left.map((run) => ({ kind: 'dependents' as const, run }));
  return allWork([counted, { effects: await writeEffects(tx, effects) }]);
}

/** @throws CannotAccept if a key was used with another body */
async function takeKeys(tx: Transaction, secrets: KeyRing, drafts: readonly Draft[]): Promise<void> {
  const keys = drafts.flatMap(({ run, id }) =>
    run.key === null ? [] : [{ key: run.key, bodyHash: bodyHashOf(run), runId: id }],
  );
  const taken = await takeKeysUnlessTaken(tx, ONE_OFF_KEYS, keys);
  const held = drafts.flatMap((draft, index) => {
    const holder = draft.run.key === null ? undefined : taken.get(draft.run.key);
    if (!holder) return [];
    const isSame = holder.bodyHash === bodyHashOf(draft.run).toString('hex');
    return [{ index, draft, runId: holder.runId, isSame }];
  });
  // No hash contains secret values: those of the earlier runs are decrypted.
  const secret = held.filter(({ draft, isSame }) => isSame && hasSecrets(draft.run.handoff.target));
  const earlier = await findTargets(
    tx,
    secret.map(({ runId }) => runId),
  );
  const faults = held.flatMap(({ index, draft: { run }, runId, isSame }): ItemFault[] => {
    const { definitionUid: uid, handoff } = run;
    const known = earlier.get(runId);
    // Runs that share one definition share them.
    if (isSame && (!known || known.uid === uid || sameSecrets(secrets, known, { uid, ...handoff }))) return [];
    return [{ index, path: '/key', message: `was used with another body, for run ${runId}` }];
  });
  for (const { draft, runId } of held) Object.assign(draft, { id: runId, created: false });
  if (faults.length > 0) throw new CannotAccept(faults);
}

/** A run that depends on others waits until it is linked to them, and released by those that have ended. */
function recordOf(
  { targets, scopeShares = NO_SHARES }: OneOffDeps,
  { run, id }: Draft,
  { dependsOn, depended }: Links,
  now: Instant,
): RunRecord {
  const { handoff, payload, key, onDependencyFailure, definitionUid, expiresAfterSeconds } = run;
  const at = run.runAt ?? now;
  const dependencies = dependsOn.get(id)?.length ?? 0;
  const definition = {
    scheduleUid: definitionUid,
    scheduleVersion: ONE_OFF_VERSION,
    scheduleId: NO_SCHEDULE,
  };
  const lane = laneInScope(scopeShares, targets.laneOf(handoff.target), key);
  const route = { lane, priority: PRIORITY_RANK[run.priority], limitId: run.limit };
  const waits = { openDependencies: dependencies, onDependencyFailure };
  return newRun(
    {
      id,
      scheduledFor: at,
      dueAt: at,
      trigger: 'api',
      status: dependencies === 0 ? 'pending' : 'waiting',
      ...definition,
      ...route,
      ...(dependencies === 0 ? {} : waits),
      ownPayload: payload,
      key,
      expiresAfterSeconds,
      hasDependents: depended.has(id),
    },
    now,
  );
}

/** Runs with long payloads take long to build, and all other work waits meanwhile. */
const RUNS_AT_ONCE = 50;

async function record(tx: Transaction, created: readonly Draft[], toRecord: readonly RunRecord[]): Promise<void> {
  if (created.length === 0) return;
  await keepDefinitions(
    tx,
    new Map(created.map(({ run: { handoff } }, index) => [toRecord[index]?.scheduleUid ?? '', handoff])),
  );
  for (let first = 0; first < toRecord.length; first += RUNS_AT_ONCE) {
    await yieldToEventLoop();
    await recordRuns(tx, toRecord.slice(first, first + RUNS_AT_ONCE));
  }
}

async function link(tx: Transaction, created: readonly Draft[], { dependsOn }: Links): Promise<void> {
  const edgesOf = ({ id: runId }: Draft): Edge[] =>
    (dependsOn.get(runId) ?? []).map((other, position) => ({ runId, dependsOn: other, position }));
  const edges = created.flatMap(edgesOf);
  for (let first = 0; first < edges.length; first += MAX_EDGES_AT_ONCE) {
    await yieldToEventLoop();
    await recordDependencies(tx, edges.slice(first, first + MAX_EDGES_AT_ONCE));
  }
}
