import type { Caller } from '../../core/access/roles.ts';
import type { Scope } from '../../core/access/scope.ts';
import { type Auditor, auditorFor } from '../../store/audit/audit-rows.ts';

/**
 * For an operation that a caller asks for: the auditor, which writes the changes into the audit, under the caller's name; and the scope
 * that the operation keeps to.
 */
export function audited<Deps extends object>(
  deps: Deps,
  { caller }: { caller: Caller },
): Deps & { auditor: Auditor; scope: Scope } {
  return { ...deps, auditor: auditorFor(caller), scope: caller.scope };
}
