import { hash } from 'node:crypto';
import type { Instant } from '../instant.ts';
import type { OnDependencyFailure } from './run.ts';
import type { Handoff, Priority } from '../schedules/schedule.ts';
import type { KeyRing } from '../secrets/key-ring.ts';
import { type Credential, type SecretFile, isSecretFile } from '../secrets/sealed-values.ts';
import { hasSecrets, mapSecrets } from '../schedules/target-secrets.ts';

/** How a run without a schedule is handed off: the fields of a schedule's definition, without the payload. */
export type OneOffHandoff<Secret = Credential> = Omit<Handoff<Secret>, 'payload' | 'expect'>;

/** A run without a schedule. */
export interface OneOffRun {
  /** Its name within the call, so that other runs of the call can depend on it. */
  ref: string | null;
  handoff: OneOffHandoff;
  /** The id of its definition, to which its secret values are bound when they are encrypted: see definitionUid. */
  definitionUid: string;
  /** The client's own JSON text. */
  payload: string | null;
  /** Idempotency key, unique over all one-off runs that are kept. */
  key: string | null;
  /** Null: now. */
  runAt: Instant | null;
  /** Refs within the call, or ids of runs. */
  dependsOn: readonly string[];
  onDependencyFailure: OnDependencyFailure;
  priority: Priority;
  /** The id of its limit; null: none. */
  limit: string | null;
  /** Null: it may wait however long. */
  expiresAfterSeconds: number | null;
  /** With those of its batch. */
  labels: Readonly<Record<string, string>>;
}

/** What the runs of one call have in common. */
export interface Batch {
  name: string | null;
  labels: Readonly<Record<string, string>>;
}

/**
 * The id of a definition of one-off runs: computed from its content (UUID in version-8 layout, RFC 9562 §5.8, from its
 * SHA-256), so that a thousand runs of the same kind share one row. If the content has secret values, a key goes into
 * the id: then a reader of the database cannot try out guesses. (Under another key it is another row.)
 */
export function definitionUid(handoff: OneOffHandoff<string | SecretFile>, secrets: KeyRing): string {
  const text = canonicalJson(handoff);
  const isSecret = secrets.sealsWith !== null && hasSecrets(handoff.target);
  const hex = isSecret ? secrets.fingerprint(text).toString('hex') : hash('sha256', text, 'hex');
  const variant = ((parseInt(hex.charAt(16), 16) & 0x3) | 0x8).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/**
 * Equal for two calls that ask for the same, without secret values: the stored text must not show whether a guess of
 * them is right. A default counts like the same value written out, and the order of members does not matter.
 */
export function bodyHashOf({
  handoff,
  payload,
  runAt,
  dependsOn,
  onDependencyFailure,
  priority,
  limit,
  expiresAfterSeconds,
  labels,
}: OneOffRun): Buffer {
  const target = mapSecrets(handoff.target, (value) => (isSecretFile(value) ? value.file : ''));
  const named = Object.keys(labels).length > 0 ? { labels } : {};
  const turn = { priority, limit, expiresAfterSeconds, ...named };
  const rest = { handoff: { ...handoff, target }, runAt, dependsOn, onDependencyFailure, ...turn };
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
