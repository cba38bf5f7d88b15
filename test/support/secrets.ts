import type { Target } from '../../src/core/schedules/schedule.ts';
import { createKeyRing, parseSecretKeys } from '../../src/core/secrets/key-ring.ts';
import { openTarget } from '../../src/core/schedules/target-secrets.ts';

/** As FIRELOCK_SECRET_KEYS has it: for processes that tests start on a database of their own. */
export const SECRET_KEYS = `test:${Buffer.alloc(32, 7).toString('base64')}`;

/** A ring of these keys, as they stand in FIRELOCK_SECRET_KEYS. */
export function ringOf(keys = SECRET_KEYS) {
  const [read, faults] = parseSecretKeys(keys);
  if (faults.length > 0) throw new Error(JSON.stringify(faults));
  return createKeyRing(read);
}

/** What tests encrypt with, unless they bring keys of their own. */
export const SECRETS = ringOf();

/** A stored target as it would be sent. */
export function opened(uid: string, target: unknown): Target<string> {
  return openTarget(SECRETS, uid, target as Target) as Target<string>;
}
