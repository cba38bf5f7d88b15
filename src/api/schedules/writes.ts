import type { Caller } from '../../core/access/roles.ts';
import { CronError } from '../../core/cron/cron.ts';
import type { CannotFollow } from '../../operations/schedules/check-names.ts';
import type { UnknownName } from '../../operations/references.ts';
import {
  changeSchedules,
  type ScheduleChangeDeps,
  tryToChangeSchedules,
} from '../../operations/schedules/schedule-changes.ts';
import type { ChangedSchedule, ScheduleChange } from '../../operations/schedules/schedule-writes.ts';
import type { ApiDeps } from '../deps.ts';
import { noteOne } from './diff.ts';
import type { AcceptedWrite } from './inputs.ts';
import { withNextFires } from './shown-schedules.ts';
import { type Fault, invalid, unforeseen } from '../http/problem.ts';
import { beyondScope, owns, type Scope, sees } from '../../core/access/scope.ts';
import type { Definition, Schedule } from '../../core/schedules/schedule.ts';

/** Impossible values and names of things that do not exist are refused together, so that one answer names every fault. */
export async function changeOne(
  deps: ApiDeps,
  { caller, ...named }: Pick<ScheduleChange, 'id' | 'calendars'> & { caller: Caller },
  decide: (...given: Parameters<ScheduleChange['decide']>) => AcceptedWrite,
) {
  let impossible: readonly Fault[] = [];
  const decideOnly: ScheduleChange['decide'] = (...given) => {
    const accepted = decide(...given);
    const [current] = given;
    impossible = [...accepted.impossible, ...queueFaults(accepted.definition, current, caller.scope)];
    return accepted.definition;
  };
  const change = { ...named, by: caller.name, scope: caller.scope, decide: decideOnly };
  const [changed] = await changeOrRefuse(
    { ...deps, note: noteOne(caller) },
    [change],
    () => '',
    () => impossible,
  );
  if (!changed) throw new Error(`the change of schedule ${named.id} was not answered`);
  const [shown = changed.schedule] = await withNextFires(deps.database, [changed.schedule]);
  return { ...changed, schedule: shown };
}

/**
 * Reports a schedule that cannot follow another at the place in the body that names the other; `pathOf` gives the place
 * of a definition. Reports the faults in `impossible` together with it. A dry run is refused in the same way, and
 * changes nothing. @throws Problem 422
 */
export async function changeOrRefuse(
  deps: ScheduleChangeDeps,
  changes: readonly ScheduleChange[],
  pathOf: (scheduleId: string) => string,
  impossible: () => readonly Fault[] = () => [],
  dryRun = false,
): Promise<ChangedSchedule[]> {
  const refuse = (cannotFollow: CannotFollow | null, unknown: readonly UnknownName<{ id: string }>[]) => {
    const following = (cannotFollow?.faults ?? []).map(({ scheduleId, message }) => ({
      path: `${pathOf(scheduleId)}/after/scheduleId`,
      message,
    }));
    const names = unknown.map(({ namer, path, message }) => ({ path: pathOf(namer.id) + path, message }));
    const faults = [...impossible(), ...following, ...names];
    if (faults.length > 0) throw invalid(faults, 422);
  };
  try {
    const change = dryRun ? tryToChangeSchedules : changeSchedules;
    return await change(
      deps,
      changes.map((change) => ({ ...change, decide: outsideOfTheDatabase(change.decide) })),
      refuse,
    );
  } catch (error) {
    // An older version accepted the stored expression. The call does not name it, but enables the schedule again.
    if (error instanceof CronError) throw invalid([{ path: '/cron', message: error.message }], 422);
    throw error;
  }
}

/** An error of a decision happens in the middle of a transaction, and has nothing to do with that transaction. */
function outsideOfTheDatabase(decide: ScheduleChange['decide']): ScheduleChange['decide'] {
  return (...given) => {
    try {
      return decide(...given);
    } catch (error) {
      throw error instanceof TypeError || error instanceof RangeError ? unforeseen(error) : error;
    }
  };
}

/** Items of a batch that a caller of this scope may not write. Whether there are such schedules, this does not ask. */
export function foreignItems(items: readonly { id: string }[], scope: Scope): Fault[] {
  return items.flatMap(({ id }, index) =>
    owns(scope, id) ? [] : [{ path: `/items/${index}/id`, message: beyondScope(scope) }],
  );
}

/** A queue needs no entry to be named: so what the caller does not see is no unknown one, but one of others. */
export function queueFaults({ target }: Definition, current: Schedule | null, scope: Scope): Fault[] {
  if (target.type !== 'pull' || sees(scope, target.queue)) return [];
  const before = current?.definition.target;
  if (before?.type === 'pull' && before.queue === target.queue) return [];
  return [{ path: '/target/queue', message: beyondScope(scope) }];
}
