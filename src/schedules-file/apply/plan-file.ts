import type { SchedulesFile } from '../schedules-file.ts';
import type { ApiCaller } from './caller.ts';
import { planNamedSets } from './named-sets.ts';
import { parentsFirst } from './parents-first.ts';
import type { Change, FilePlan } from './file-plan.ts';
import { planSchedules } from './plan-schedules.ts';
import { toPrune } from './prune.ts';

/**
 * What applying the file would change, and every fault, including those from reading it. Changes nothing. If a file has
 * faults, the plan is incomplete and must not be applied.
 * @throws Refused, and the errors of the caller
 */
export async function planFile(
  caller: ApiCaller,
  file: SchedulesFile,
  { prune }: { prune: boolean },
): Promise<FilePlan> {
  const { entries } = file;
  const limits = await planNamedSets(caller, 'limits', entries.limits);
  const calendars = await planNamedSets(caller, 'calendars', entries.calendars);
  const { sorted, faults: circles } = parentsFirst(entries.schedules);
  const inOrder = new Set(sorted);
  const schedules = await planSchedules(caller, sorted, {
    limits: limits.fresh,
    calendars: calendars.fresh,
    circular: entries.schedules.filter((entry) => !inOrder.has(entry)).map(({ id }) => id),
  });
  const faults = [...file.faults, ...limits.faults, ...calendars.faults, ...circles, ...schedules.faults];
  const toDelete = prune && faults.length === 0 ? await toPrune(caller, file) : [];
  const deleted = toDelete.map(({ id }): Change => ({
    kind: 'schedules',
    id,
    change: 'deleted',
    fields: [],
  }));
  return {
    faults,
    changes: [...limits.changes, ...calendars.changes, ...schedules.changes, ...deleted],
    unchanged: limits.unchanged + calendars.unchanged + schedules.unchanged,
    toSend: { limits: limits.toSend, calendars: calendars.toSend, schedules: schedules.toSend },
    toDelete,
  };
}
