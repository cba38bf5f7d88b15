import { type Scope, beyondScope, owns, sees } from '../../core/access/scope.ts';
import type { Definition, Schedule } from '../../core/schedules/schedule.ts';
import type { Fault } from '../http/problem.ts';

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
