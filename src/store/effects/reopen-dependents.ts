import { sql } from 'drizzle-orm';
import { owns, type Scope } from '../../core/access/scope.ts';
import type { Instant } from '../../core/instant.ts';
import type { RunRecord } from '../../core/runs/run-record.ts';
import type { RunStatus } from '../../core/runs/run.ts';
import { reopenRun } from '../../core/runs/transitions.ts';
import { bigints, FIRST_UUID, hasOneOfIds, ints, texts, uuids } from '../../postgres/sql/arrays.ts';
import { databaseNow, onlyColumnOf, recordsOf, rowsOf } from '../../postgres/sql/rows.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { goneNamesOf } from '../runs/gone-names.ts';
import { type RunChange, lockEndedRuns, openAmong, saveLockedRuns } from '../runs/lock-and-save.ts';
import type { Effect } from './effect-rows.ts';

/** Of one transaction: effects, runs that are looked at with their payloads, and what these depend on; of one run it is all. */
const MAX_EFFECTS = 20;
const MAX_RUNS = 100;
const MAX_DEPENDENCIES = 500;

interface Reopened {
  changes: RunChange[];
  /** Another transaction has locked a run: try again. */
  unfinished: Effect[];
  begun: Effect[];
  later: Effect[];
  /** That were written: what failed for want of these runs is next. */
  effects: number;
}

/** To be called where these runs are opened again. Answers how many effects there are to see to. */
export async function writeReopens(
  tx: Transaction,
  reopened: readonly { run: RunRecord; scope: Scope }[],
): Promise<number> {
  const told = reopened.filter(({ run }) => run.hasDependents);
  if (told.length === 0) return 0;
  const runs = told.map(({ run }) => run);
  await tx.execute(sql`-- writeReopens
    INSERT INTO effects (kind, run_id, schedule_uid, schedule_version, schedule_id, trigger, status, finished_at, attempt, scope)
    SELECT 'reopens', e.run_id, e.schedule_uid, e.schedule_version, e.schedule_id, e.trigger, e.status, clock_timestamp(), e.attempt,
      e.scope::jsonb
    FROM unnest(${uuids(runs.map(({ id }) => id))}, ${uuids(runs.map(({ scheduleUid }) => scheduleUid))},
      ${ints(runs.map(({ scheduleVersion }) => scheduleVersion))}, ${texts(runs.map(({ scheduleId }) => scheduleId))},
      ${texts(runs.map(({ trigger }) => trigger))}, ${texts(runs.map(({ status }) => status))},
      ${ints(runs.map(({ attempts }) => attempts))}, ${texts(told.map(({ scope }) => scope && JSON.stringify(scope)))})
      AS e(run_id, schedule_uid, schedule_version, schedule_id, trigger, status, attempt, scope)`);
  return told.length;
}

/**
 * Opens again what failed for want of runs that were opened again, unless another of its dependencies has failed; it waits for those that
 * are open. What failed for want of these has effects of its own: so a graph is walked step by step, a transaction for each.
 *
 * An open dependency is locked until the transaction ends: so its end comes later, and finds that it is waited for. No lock is waited for.
 */
export async function reopenDependents(tx: Transaction, effects: readonly Effect[]): Promise<Reopened> {
  if (effects.length === 0) return { changes: [], unfinished: [], begun: [], later: [], effects: 0 };
  const steps = await stepsOf(tx, effects.slice(0, MAX_EFFECTS));
  const ids = [...new Set(steps.flatMap(({ failed }) => failed))];
  const dependencies = await dependenciesOf(tx, ids);
  const free = new Map((await lockEndedRuns(tx, ids, 'skipLocked')).map((run) => [run.id, run]));
  const isLocked = (id: string) => !free.has(id) || areLocked(dependencies, id);
  const scopes = scopesOf(steps);
  const asked = [...free.values()].filter(
    (run) => run.error?.kind === 'dependency' && !isLocked(run.id) && mayReopen(run, scopes),
  );
  const gone = await goneNamesOf(tx, asked);
  const now = await databaseNow(tx);
  const changes = asked
    .filter((run) => !gone.has(run.id) && !isStillFailed(dependencies, run))
    .map((from) => ({ from, to: openedAgain(from, dependencies, now) }));
  await countAgain(tx, dependencies, new Set(changes.map(({ to }) => to.id)));
  const written = await saveLockedRuns(tx, changes);
  const next = changes.flatMap(({ to: run }) => [...new Set(scopes.get(run.id))].map((scope) => ({ run, scope })));
  const held = new Set(steps.filter(({ failed }) => failed.some(isLocked)).map(({ effect }) => effect));
  const others = steps.filter(({ effect }) => !held.has(effect));
  return {
    changes,
    unfinished: [...held],
    begun: others.flatMap(({ effect, doneThrough }) => (doneThrough ? [{ ...effect, doneThrough }] : [])),
    later: [...effects.slice(MAX_EFFECTS), ...others.filter(({ isPutOff }) => isPutOff).map(({ effect }) => effect)],
    effects: written + (await writeReopens(tx, next)),
  };
}

function openedAgain(from: RunRecord, dependencies: Dependencies, now: Instant): RunRecord {
  const again = openOf(dependencies, from.id).filter(({ isCounted }) => isCounted).length;
  const openDependencies = (from.openDependencies ?? 0) + again;
  const status = openDependencies > 0 ? 'waiting' : 'pending';
  return { ...reopenRun(from, null, { status, now }), openDependencies };
}

/** By run: the scopes of those who ask for it. */
function scopesOf(steps: readonly Step[]): ReadonlyMap<string, Scope[]> {
  const scopes = new Map<string, Scope[]>();
  for (const { effect, failed } of steps)
    for (const id of failed) scopes.set(id, [...(scopes.get(id) ?? []), effect.scope]);
  return scopes;
}

function mayReopen({ id, key }: RunRecord, scopes: ReadonlyMap<string, Scope[]>): boolean {
  return scopes.get(id)?.some((scope) => scope === null || (key !== null && owns(scope, key))) === true;
}

/** What one transaction does of an effect. */
interface Step {
  effect: Effect;
  /** Dependents that failed for want of a run. */
  failed: string[];
  /** Up to where its dependents have been seen to; null: it is done with this, or nothing of it is. */
  doneThrough: string | null;
  /** Nothing of it is done: it would have been too much. */
  isPutOff: boolean;
}

interface DependentRow {
  /** bigint: a string on the wire. */
  effect_id: string;
  run_id: string;
  is_failed: boolean;
  dependencies: number;
}

async function stepsOf(tx: Transaction, effects: readonly Effect[]): Promise<Step[]> {
  const share = Math.ceil(MAX_RUNS / effects.length);
  const rows = await rowsOf<DependentRow>(tx)(sql`-- stepsOf
    SELECT e.id AS effect_id, d.run_id, h.id IS NOT NULL AS is_failed,
      CASE WHEN h.id IS NULL THEN 0 ELSE (SELECT count(*) FROM run_dependencies o WHERE o.run_id = d.run_id) END::int AS dependencies
    FROM unnest(${bigints(effects.map(({ id }) => id))}, ${uuids(effects.map(({ runId }) => runId))},
        ${uuids(effects.map(({ doneThrough }) => doneThrough ?? FIRST_UUID))}) WITH ORDINALITY AS e(id, run_id, after, place),
      LATERAL (SELECT run_id FROM run_dependencies WHERE depends_on = e.run_id AND run_id > e.after
        ORDER BY run_id LIMIT ${share}) AS d
      LEFT JOIN LATERAL (SELECT id FROM history WHERE id = d.run_id AND status = 'failed' AND error->>'kind' = 'dependency'
        LIMIT 1) AS h ON true
    ORDER BY e.place, d.run_id`);
  const byEffect = Map.groupBy(rows, ({ effect_id }) => Number(effect_id));
  let looked = 0;
  return effects.map((effect): Step => {
    const all = byEffect.get(effect.id) ?? [];
    const some = all.filter(({ dependencies }) => {
      looked += dependencies;
      return looked <= MAX_DEPENDENCIES || looked === dependencies;
    });
    const isWhole = some.length === all.length && all.length < share;
    return {
      effect,
      failed: some.filter(({ is_failed }) => is_failed).map(({ run_id }) => run_id),
      doneThrough: isWhole ? null : (some.at(-1)?.run_id ?? null),
      isPutOff: some.length === 0 && all.length > 0,
    };
  });
}

/** That a run depends on another, whose end may have been counted. */
interface CountedEdge {
  runId: string;
  dependsOn: string;
  isCounted: boolean;
}

/** What some runs depend on, and where that stands. */
interface Dependencies {
  edges: ReadonlyMap<string, CountedEdge[]>;
  /** Open ones, which no other transaction ends until this one has ended. */
  open: ReadonlySet<string>;
  ended: ReadonlyMap<string, RunStatus>;
  /** Open ones that another transaction has locked. */
  locked: ReadonlySet<string>;
}

async function dependenciesOf(tx: Transaction, runIds: readonly string[]): Promise<Dependencies> {
  const edges = await edgesOf(tx, runIds);
  const ids = [...new Set(edges.map(({ dependsOn }) => dependsOn))];
  const open = await lockOpenAmong(tx, ids);
  const others = ids.filter((id) => !open.has(id));
  const rows =
    others.length === 0
      ? []
      : await rowsOf<{ id: string; status: RunStatus }>(tx)(sql`-- dependenciesOf
        SELECT id, status FROM history WHERE ${hasOneOfIds(sql`id`, others)}`);
  const ended = new Map(rows.map(({ id, status }) => [id, status]));
  const missing = others.filter((id) => !ended.has(id));
  return {
    edges: Map.groupBy(edges, ({ runId }) => runId),
    open,
    ended,
    locked: await openAmong(tx, missing),
  };
}

function areLocked({ edges, locked }: Dependencies, runId: string): boolean {
  return edges.get(runId)?.some(({ dependsOn }) => locked.has(dependsOn)) === true;
}

/** One of them has ended otherwise than well; or the one that it failed for was dropped from history. */
function isStillFailed(dependencies: Dependencies, { id, error }: RunRecord): boolean {
  const { edges, open, ended } = dependencies;
  return (edges.get(id) ?? []).some(({ dependsOn }) => {
    if (open.has(dependsOn)) return false;
    const status = ended.get(dependsOn);
    return status === undefined ? error?.message.includes(dependsOn) === true : status !== 'succeeded';
  });
}

function openOf({ edges, open }: Dependencies, runId: string): CountedEdge[] {
  return (edges.get(runId) ?? []).filter(({ dependsOn }) => open.has(dependsOn));
}

/** The ends to come of these runs' open dependencies count as if there had been none before. */
async function countAgain(tx: Transaction, dependencies: Dependencies, runIds: ReadonlySet<string>): Promise<void> {
  const again = [...runIds].flatMap((id) => openOf(dependencies, id).filter(({ isCounted }) => isCounted));
  if (again.length === 0) return;
  await tx.execute(sql`-- countAgain
    UPDATE run_dependencies d SET counted_at = NULL
    FROM unnest(${uuids(again.map(({ dependsOn }) => dependsOn))}, ${uuids(again.map(({ runId }) => runId))}) AS e(depends_on, run_id)
    WHERE d.depends_on = e.depends_on AND d.run_id = e.run_id`);
}

async function edgesOf(tx: Transaction, runIds: readonly string[]): Promise<CountedEdge[]> {
  if (runIds.length === 0) return [];
  return recordsOf<CountedEdge>(tx)(sql`-- edgesOf
    SELECT run_id, depends_on, counted_at IS NOT NULL AS is_counted FROM run_dependencies WHERE run_id = ANY (${uuids(runIds)})`);
}

async function lockOpenAmong(tx: Transaction, ids: readonly string[]): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set();
  const found = await onlyColumnOf<string>(tx)(sql`-- lockOpenAmong
    SELECT id FROM runs WHERE id = ANY (${uuids(ids)}) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED`);
  return new Set(found);
}
