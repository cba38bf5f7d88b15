/**
 * Guarantees: runs that are asked for once are recorded all or none, once per key, and each waits for all that it depends on.
 * Transaction: one; what they depend on is locked before it is looked at, so that no end comes in between.
 * If the process dies here: all are there or none; they are anybody's work.
 */
import { findCycle } from '../core/dependency-cycle.ts';
import { EARLIEST, type Instant, LATEST } from '../core/instant.ts';
import { type OneOffRun, bodyHashOf, definitionUid } from '../core/one-off.ts';
import { RUN_ENDS } from '../core/run-end.ts';
import { type RunStatus, randomRunId, scheduledForOf } from '../core/run.ts';
import { PRIORITY_RANK } from '../core/schedule.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import { othersTurn } from '../runtime/slices.ts';
import { databaseNow } from '../store/database-now.ts';
import type { Database } from '../store/database.ts';
import type { Transaction } from '../store/executor.ts';
import { type Aftermath, NO_AFTERMATH } from '../store/followers.ts';
import { queueOfLane } from '../store/lanes.ts';
import {
  EDGES_AT_ONCE,
  type Edge,
  RUNS_AT_ONCE,
  type RunToRecord,
  keepDefinitions,
  lockDependencies,
  recordDependencies,
  recordRuns,
  takeKeysUnlessTaken,
} from '../store/one-off-runs.ts';
import type { TargetRegistry } from '../targets/registry.ts';

export interface OneOffDeps {
  database: Database;
  events: EventBus;
  targets: TargetRegistry;
  /** Sees to what is there to be done now. */
  followUp: (aftermath: Aftermath) => void;
  /** Nothing is recorded that is older than what is kept. */
  retentionDays: number;
}

/** In an item: `path` is a JSON pointer within it. */
export interface ItemFault {
  index: number;
  path: string;
  message: string;
}

/** Well-formed, and impossible: nothing was recorded. */
export class CannotAccept extends Error {
  override readonly name = 'CannotAccept';
  readonly faults: readonly ItemFault[];

  constructor(faults: readonly ItemFault[]) {
    super(faults.map(({ message }) => message).join('; '));
    this.faults = faults;
  }
}

/** In one call. */
export const MOST_DEPENDENCIES = 100_000;

/**
 * Records runs, all or none; answers their ids in the order asked for. A key that was used before with the same body stands for the
 * run it made. Refs and keys are given once each, and none twice in one list of dependencies; a ref goes before the id of a run.
 * @throws CannotAccept
 */
export async function acceptRuns(
  deps: OneOffDeps,
  asked: readonly OneOffRun[],
): Promise<{ id: string; created: boolean }[]> {
  refuseWhatCannotBe(asked);
  const { accepted, toRecord, failing } = await deps.database.transaction((tx) => accept(tx, deps, asked));
  if (toRecord.length > 0) {
    deps.events.emit({ type: 'runsAccepted', count: toRecord.length });
    const ready = toRecord.filter((run) => !run.openDependencies && run.failedDependency === null);
    const toPull = ready.some(({ lane }) => queueOfLane(lane) !== null);
    deps.followUp({ ...NO_AFTERMATH, toClaim: ready.length, toPull, toFail: failing });
  }
  return accepted;
}

interface Accepted {
  accepted: { id: string; created: boolean }[];
  toRecord: RunToRecord[];
  /** Some of them depend on what has failed already. */
  failing: boolean;
}

async function accept(tx: Transaction, deps: OneOffDeps, asked: readonly OneOffRun[]): Promise<Accepted> {
  const now = await databaseNow(tx);
  refuseTooOld(asked, now, deps.retentionDays);
  const drafts = asked.map((run): Draft => ({ run, id: randomRunId(run.runAt ?? now), created: true }));
  await takeKeys(tx, drafts);
  const idOfRef = new Map(drafts.flatMap(({ run, id }) => (run.ref === null ? [] : [[run.ref, id]])));
  const created = drafts.filter((draft) => draft.created);
  const own = new Set(created.map(({ id }) => id));
  // The ref of an item whose key stands for a run, and the id of that run, name the same one.
  const edges = created.map(({ run }) => [
    ...new Set(run.dependsOn.map((name) => idOfRef.get(name) ?? name.toLowerCase())),
  ]);
  const depended = new Set(edges.flat());
  const statuses = await lockDependencies(
    tx,
    [...depended].filter((id) => !own.has(id) && mayBeRun(id)),
  );
  refuseUnknown(asked, drafts, (id) => own.has(id) || statuses.has(id), idOfRef);

  const toRecord = created.map((draft, index): RunToRecord => {
    const dependsOn = edges[index] ?? [];
    return {
      ...recordOf(deps.targets, draft, now),
      ...standingOf(draft.run, dependsOn, statuses),
      hasDependents: depended.has(draft.id),
    };
  });
  await record(tx, { created, toRecord, edges, statuses }, now);
  return {
    accepted: drafts.map(({ id, created: isNew }) => ({ id, created: isNew })),
    toRecord,
    failing: toRecord.some((run) => run.failedDependency !== null),
  };
}

interface Draft {
  run: OneOffRun;
  id: string;
  /** False: its key stands for this run already. */
  created: boolean;
}

/** @throws CannotAccept where one was used with another body. */
async function takeKeys(tx: Transaction, drafts: readonly Draft[]): Promise<void> {
  const keys = drafts.flatMap(({ run, id }) =>
    run.key === null ? [] : [{ key: run.key, bodyHash: bodyHashOf(run), runId: id }],
  );
  const taken = await takeKeysUnlessTaken(tx, keys);
  const faults: ItemFault[] = [];
  drafts.forEach((draft, index) => {
    const holder = draft.run.key === null ? undefined : taken.get(draft.run.key);
    if (!holder) return;
    if (holder.bodyHash !== bodyHashOf(draft.run).toString('hex')) {
      faults.push({ index, path: '/key', message: `was used with another body, for run ${holder.runId}` });
    }
    draft.id = holder.runId;
    draft.created = false;
  });
  if (faults.length > 0) throw new CannotAccept(faults);
}

function recordOf(
  targets: TargetRegistry,
  { run, id }: Draft,
  now: Instant,
): Pick<RunToRecord, 'id' | 'scheduledFor' | 'definitionUid' | 'lane' | 'priority' | 'payload' | 'key'> {
  const { handoff, payload, key } = run;
  return {
    id,
    scheduledFor: run.runAt ?? now,
    definitionUid: definitionUid(handoff),
    lane: targets.laneOf(handoff.target),
    priority: PRIORITY_RANK[run.priority],
    payload,
    key,
  };
}

/** What is recorded in the same call is as open as can be. */
function standingOf(
  { onDependencyFailure }: OneOffRun,
  dependsOn: readonly string[],
  statuses: ReadonlyMap<string, RunStatus>,
): Pick<RunToRecord, 'openDependencies' | 'onDependencyFailure' | 'failedDependency'> {
  const open = dependsOn.filter((id) => !hasEnded(statuses.get(id)));
  const failed = dependsOn.find((id) => hasEnded(statuses.get(id)) && statuses.get(id) !== 'succeeded');
  return {
    openDependencies: dependsOn.length === 0 ? null : open.length,
    onDependencyFailure,
    failedDependency: onDependencyFailure === 'fail' ? (failed ?? null) : null,
  };
}

/** Any other UUID carries a time that no run has, and that not every timestamp can hold. */
function mayBeRun(id: string): boolean {
  const at = scheduledForOf(id);
  return at >= EARLIEST && at <= LATEST;
}

function hasEnded(status: RunStatus | undefined): boolean {
  return RUN_ENDS.some((end) => end === status);
}

async function record(
  tx: Transaction,
  {
    created,
    toRecord,
    edges,
    statuses,
  }: {
    created: readonly Draft[];
    toRecord: readonly RunToRecord[];
    edges: readonly (readonly string[])[];
    statuses: ReadonlyMap<string, RunStatus>;
  },
  now: Instant,
): Promise<void> {
  if (created.length === 0) return;
  await keepDefinitions(
    tx,
    new Map(created.map(({ run: { handoff } }, index) => [toRecord[index]?.definitionUid ?? '', handoff])),
  );
  for (let first = 0; first < toRecord.length; first += RUNS_AT_ONCE) {
    await othersTurn();
    await recordRuns(tx, toRecord.slice(first, first + RUNS_AT_ONCE), now);
  }
  const toLink = created.flatMap(({ id: runId }, index) =>
    (edges[index] ?? []).map((dependsOn, position): Edge => {
      return { runId, dependsOn, position, counted: hasEnded(statuses.get(dependsOn)) };
    }),
  );
  for (let first = 0; first < toLink.length; first += EDGES_AT_ONCE) {
    await othersTurn();
    await recordDependencies(tx, toLink.slice(first, first + EDGES_AT_ONCE), now);
  }
}

/** @throws CannotAccept */
function refuseWhatCannotBe(asked: readonly OneOffRun[]): void {
  const count = asked.reduce((sum, { dependsOn }) => sum + dependsOn.length, 0);
  if (count > MOST_DEPENDENCIES) {
    const message = `are ${count} in all; one call can have ${MOST_DEPENDENCIES}`;
    throw new CannotAccept([{ index: asked.length - 1, path: '/dependsOn', message }]);
  }
  const cycle = findCycle(asked);
  if (!cycle) return;
  const index = asked.findIndex(({ ref }) => ref === cycle[0]);
  throw new CannotAccept([{ index, path: '/dependsOn', message: `is a cycle: ${cycle.join(' → ')}` }]);
}

const DAY_MS = 86_400_000;

function refuseTooOld(asked: readonly OneOffRun[], now: Instant, retentionDays: number): void {
  const faults = asked.flatMap(({ runAt }, index) =>
    runAt !== null && runAt < now - retentionDays * DAY_MS
      ? [{ index, path: '/runAt', message: `is longer ago than history is kept (${retentionDays} days)` }]
      : [],
  );
  if (faults.length > 0) throw new CannotAccept(faults);
}

function refuseUnknown(
  asked: readonly OneOffRun[],
  drafts: readonly Draft[],
  isThere: (id: string) => boolean,
  idOfRef: ReadonlyMap<string, string>,
): void {
  const faults = asked.flatMap(({ dependsOn }, index) =>
    drafts[index]?.created
      ? dependsOn.flatMap((name, position) =>
          isThere(idOfRef.get(name) ?? name.toLowerCase())
            ? []
            : [{ index, path: `/dependsOn/${position}`, message: `there is no run ${name}` }],
        )
      : [],
  );
  if (faults.length > 0) throw new CannotAccept(faults);
}
