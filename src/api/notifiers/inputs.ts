import type { HandoffTarget } from '../../core/schedules/schedule.ts';
import { sealTarget } from '../../core/schedules/target-secrets.ts';
import type { NotifierContent } from '../../operations/notifier-changes.ts';
import type { StoredNotifier } from '../../store/notifiers/rows.ts';
import { type Fault, invalid } from '../http/problem.ts';
import type { Resolving } from '../named/named-routes.ts';
import { NO_KEY } from '../targets/inputs.ts';
import { fileRules } from '../targets/secret-files.ts';
import { CHANNEL_SETUPS, type Filling } from './channel-setups.ts';
import type { NotifierInput } from './schemas.ts';

/**
 * A notifier as it was sent, in the form in which it is stored. Values that were sent masked are filled in from the stored notifier;
 * secret values are encrypted. `faults`: of values that cannot be. @throws Problem 400
 */
export function resolveNotifier(
  { id: _id, version: _version, updatedAt: _updatedAt, channel, ...rest }: NotifierInput,
  { current, uid, scope, deps }: Resolving<StoredNotifier>,
): { content: NotifierContent; faults: Fault[] } {
  const { secrets: ring, sendsMail, mailToDomains } = deps;
  const before = current?.target ?? null;
  const { targetOf, placeOf } = CHANNEL_SETUPS[channel.type];
  const from: Filling = {
    ...{ stored: before, mail: { sends: sendsMail, domains: mailToDomains } },
    ...{ files: fileRules(deps, scope), faults: [], impossible: [] },
  };
  const given: HandoffTarget = targetOf(channel as never, from);
  if (from.faults.length > 0) throw invalid(from.faults);
  const { target, unsealed } = sealTarget(given, { ring, uid, before });
  const faults = unsealed.map(({ steps }) => ({ path: placeOf(steps), message: NO_KEY }));
  return { content: { ...rest, channel: channel.type, target }, faults: [...faults, ...from.impossible] };
}
