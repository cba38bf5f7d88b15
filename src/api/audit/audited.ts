import type { Caller } from '../../core/access/roles.ts';
import { type Auditor, auditorFor } from '../../store/audit/record-audit.ts';

/** For an operation that a caller asks for: it writes what it changes into the audit, under the name of the caller. */
export function audited<Deps extends object>(
  deps: Deps,
  { caller }: { caller: Caller },
): Deps & { auditor: Auditor } {
  return { ...deps, auditor: auditorFor(caller) };
}
