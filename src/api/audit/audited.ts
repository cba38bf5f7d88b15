import type { Caller } from '../../core/access/roles.ts';
import { type Auditor, auditorFor } from '../../store/audit/record-audit.ts';

/** The auditor for an operation that a caller asks for: it writes the changes into the audit, under the caller's name. */
export function audited<Deps extends object>(
  deps: Deps,
  { caller }: { caller: Caller },
): Deps & { auditor: Auditor } {
  return { ...deps, auditor: auditorFor(caller) };
}
