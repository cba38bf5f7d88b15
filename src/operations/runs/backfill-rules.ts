/**
 * Guarantees: a run of a version has a definition to go by, and names what exists.
 * Transaction: the caller's; what exists stays until it ends.
 * If the process dies here: nothing of the caller's transaction is written.
 */
import type { ScopeShares } from '../../core/access/scope.ts';
import { runOfSchedule } from '../../core/runs/new-run.ts';
import { type Schedule, connectionOf } from '../../core/schedules/schedule.ts';
import { NotNow } from '../../postgres/errors.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { keepNamed } from '../../store/names/named-rows.ts';
import type { VersionRules } from '../../store/runs/backfill-runs.ts';
import { type RunRules, keepVersions } from '../../store/schedules/schedule-versions.ts';
import type { TargetRegistry } from '../../targets/target.ts';
import { OperationRefused } from '../operation-refused.ts';

export interface RulesDeps {
  targets: Pick<TargetRegistry, 'laneOf'>;
  scopeShares?: ScopeShares;
}

type Rules = ReadonlyMap<number, VersionRules>;

export function rulesNow(schedule: Schedule, { scopeShares }: RulesDeps): Rules {
  const { expect, observe } = schedule.definition;
  return new Map([[schedule.version, { ofSchedule: runOfSchedule(schedule, scopeShares), expect, observe }]]);
}

/** A run of a version goes where that says, in its turn. @throws OperationRefused if the limit that it names is gone */
export async function rulesThen(
  tx: Transaction,
  { uid, id }: Schedule,
  versions: readonly number[],
  { targets, scopeShares }: RulesDeps,
): Promise<Rules> {
  const kept = await keepVersions(tx, uid, versions);
  if (kept.size < versions.length) throw new NotNow(`versions of schedule ${id} are being dropped; try again`);
  await refuseGoneNames(tx, kept);
  return new Map(
    [...kept].map(([version, definition]) => {
      const lane = targets.laneOf(definition.target);
      const ofSchedule = runOfSchedule({ uid, id, version, lane, definition }, scopeShares);
      return [version, { ofSchedule, expect: definition.expect, observe: definition.observe }];
    }),
  );
}

async function refuseGoneNames(tx: Transaction, kept: ReadonlyMap<number, RunRules>): Promise<void> {
  const named = [...kept].flatMap(([version, { limit, target }]) => [
    { version, table: 'limits' as const, noun: 'limit', name: limit },
    { version, table: 'connections' as const, noun: 'connection', name: connectionOf(target) },
  ]);
  for (const table of ['limits', 'connections'] as const) {
    const there = await keepNamed(
      tx,
      table,
      named.flatMap((one) => (one.table === table ? (one.name ?? []) : [])),
    );
    const gone = named.find((one) => one.table === table && one.name !== null && !there.has(one.name));
    if (gone)
      throw new OperationRefused(
        422,
        `version ${gone.version} names the ${gone.noun} ${gone.name ?? ''}, which was deleted`,
      );
  }
}
