import { type Caller, mayCall } from '../../core/access/roles.ts';
import { owns } from '../../core/access/scope.ts';
import type { Schedule } from '../../core/schedules/schedule.ts';
import { readPingKeys } from '../../store/runs/observed/ping-keys.ts';
import type { ApiDeps } from '../deps.ts';
import { answerSchedule } from './answers.ts';

/** The keys of observed schedules, by uid, as far as the caller may have their jobs report. Asks only about these. */
export function shownKeys(
  { database, secrets }: Pick<ApiDeps, 'database' | 'secrets'>,
  { role, scope }: Caller,
  schedules: readonly Schedule[],
): Promise<ReadonlyMap<string, string>> {
  const observed = schedules.filter(({ definition }) => definition.observe !== null);
  const uids = observed
    .filter(({ id }) => mayCall(role, 'operator') && owns(scope, id))
    .map(({ uid }) => uid);
  return uids.length === 0
    ? Promise.resolve(new Map())
    : database.run((db) => readPingKeys(db, secrets, uids));
}

/** As this caller sees it. */
export async function answerTo(
  deps: Pick<ApiDeps, 'database' | 'secrets'>,
  caller: Caller,
  schedule: Schedule,
): Promise<ReturnType<typeof answerSchedule>> {
  const keys = await shownKeys(deps, caller, [schedule]);
  return answerSchedule(schedule, keys.get(schedule.uid) ?? null);
}
