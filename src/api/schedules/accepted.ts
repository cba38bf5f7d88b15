import type { Definition } from '../../core/schedules/schedule.ts';
import type { KeyRing } from '../../core/secrets/key-ring.ts';
import { type Fault, invalid } from '../http/problem.ts';
import { fireFaults } from './checks/fire-faults.ts';
import { pauseFaults } from './checks/pause-faults.ts';
import { type ResolvedInput, encryptedAnew } from './inputs.ts';

/** The schedule that a write makes, unless it is impossible. */
export interface AcceptedWrite {
  definition: Definition;
  /** Faults to be answered with 422. */
  impossible: Fault[];
}

/** @throws Problem 400 */
export function accepted(
  resolved: ResolvedInput,
  context: Parameters<typeof fireFaults>[1],
  secrets: KeyRing,
): AcceptedWrite {
  const { definition, faults, impossible } = resolved;
  if (faults.length > 0) throw invalid(faults);
  return {
    definition: encryptedAnew(definition, context.current, secrets),
    impossible: [...impossible, ...fireFaults(definition, context), ...pauseFaults(resolved, context)],
  };
}
