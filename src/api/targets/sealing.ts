import type { Target } from '../../core/schedules/schedule.ts';
import type { KeyRing } from '../../core/secrets/key-ring.ts';
import { sealTarget } from '../../core/secrets/target-secrets.ts';
import { pointer } from '../http/json/json-body.ts';
import type { Fault } from '../http/problem.ts';

export interface Sealing {
  secrets: KeyRing;
  /** The uid of the schedule of the target, or of the definition of one-off runs. */
  uid: string;
}

/**
 * The target as it is stored: its secret values are encrypted. Values that cannot be encrypted without a key are added
 * to `impossible`.
 */
export function sealed(
  given: Target,
  { secrets: ring, uid }: Sealing,
  before: Target | null,
  impossible: Fault[],
): Target {
  const { target, unsealed } = sealTarget(given, { ring, uid, before });
  impossible.push(...unsealed.map(({ steps }) => ({ path: pointer(['target', ...steps]), message: NO_KEY })));
  return target;
}

const NO_KEY =
  'cannot be stored, since it is stored encrypted only and there is no key: set FIRELOCK_SECRET_KEYS (docs/security.md)';
