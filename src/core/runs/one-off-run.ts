import { hash } from 'node:crypto';
import type { Instant } from '../instant.ts';
import type { OnDependencyFailure } from './run.ts';
import type { Handoff, Priority, SecretText } from '../schedules/schedule.ts';
import type { KeyRing } from '../secrets/key-ring.ts';
import { hasSecrets, mapSecrets } from '../secrets/target-secrets.ts';

/** How a run that belongs to no schedule is handed off: what a schedule's definition says of it, but for the payload. */
export type OneOffHandoff<Secret = SecretText> = Omit<Handoff<Secret>, 'payload'>;

/** A run that is asked for once. */
export interface OneOffRun {
  /** Its name within the call, for others of the call to depend on it. */
  ref: string | null;
  handoff: OneOffHandoff;
  /** What its definition is kept under, and its secret values are encrypted for: see definitionUid. */
  definitionUid: string;
  /** The client's own JSON text. */
  payload: string | null;
  /** Idempotency key, unique over all one-off runs that are kept. */
  key: string | null;
  /** Null: now. */
  runAt: Instant | null;
  /** Refs of the call, or ids of runs. */
  dependsOn: readonly string[];
  onDependencyFailure: OnDependencyFailure;
  priority: Priority;
  /** Id of the limit that it counts against; null: none. */
  limit: string | null;
}

/**
 * The id under which a definition of one-off runs is kept: made of what it says (UUID in version-8 layout, RFC 9562 §5.8, of its
 * SHA-256), so that a thousand runs of the same kind share one row. If it has secret values, a key goes into it: a reader of the
 * database can then not try out guesses. (Under another key it is another row.)
 */
export function definitionUid(handoff: OneOffHandoff<string>, secrets: KeyRing): string {
  const text = canonicalJson(handoff);
  const isSecret = secrets.sealsWith !== null && hasSecrets(handoff.target);
  const hex = isSecret ? secrets.fingerprint(text).toString('hex') : hash('sha256', text, 'hex');
  const variant = ((parseInt(hex.charAt(16), 16) & 0x3) | 0x8).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/**
 * Equal for two calls that ask for the same, but for secret values: what is stored must not tell whether a guess of them is right.
 * Defaults count as if they were written, and the order of members does not count.
 */
export function bodyHashOf({
  handoff,
  payload,
  runAt,
  dependsOn,
  onDependencyFailure,
  priority,
  limit,
}: OneOffRun): Buffer {
  const target = mapSecrets(handoff.target, () => '');
  const rest = { handoff: { ...handoff, target }, runAt, dependsOn, onDependencyFailure, priority, limit };
  return hash('sha256', `${canonicalJson(rest)}\n${payload ?? ''}`, 'buffer');
}

/** Members sorted by name, at any depth. */
function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}
