import { createKeyRing } from '../core/secrets/key-ring.ts';
import type { SecretKey } from '../core/secrets/secret-keys.ts';
import { type Rotation, rotateSecrets } from '../operations/rotate-secrets.ts';
import { openDatabase } from '../postgres/database.ts';
import { databaseNow } from '../postgres/sql/database-now.ts';
import { reasonOf } from '../runtime/reason.ts';

export interface RotateSecretsOptions {
  databaseUrl: string;
  secretKeys: readonly SecretKey[];
  signal: AbortSignal;
  print: (line: string) => void;
}

/** The command `firelock rotate-secrets`; answers the exit code: 0 once everything is encrypted with the first key. */
export async function rotateSecretsCommand({
  databaseUrl,
  secretKeys,
  signal,
  print,
}: RotateSecretsOptions): Promise<number> {
  const [first, ...others] = secretKeys.map(({ id }) => id);
  if (first === undefined) {
    print('there is no key to encrypt with: set FIRELOCK_SECRET_KEYS (docs/security.md)');
    return 1;
  }
  const database = openDatabase(databaseUrl, 1);
  try {
    // If the server does not answer at all, the command says so at once.
    await database.run(databaseNow);
    const rotation = await rotateSecrets({ database, secrets: createKeyRing(secretKeys), signal });
    for (const line of linesOf(rotation, { first, others })) print(line);
    const isDone = [...rotation.byKey.keys()].every((id) => id === first);
    return isDone && rotation.unreadable.length === 0 ? 0 : 1;
  } catch (error) {
    const why = signal.aborted ? 'interrupted' : `failed: ${reasonOf(error)}`;
    print(`${why}; what was done so far stays done, run it again for the rest`);
    return 1;
  } finally {
    await database.close();
  }
}

function linesOf(
  { rotated, byKey, unreadable }: Rotation,
  { first, others }: { first: string; others: readonly string[] },
): string[] {
  const foreign = [...byKey.keys()].filter((id) => id !== first && !others.includes(id));
  return [
    `values encrypted anew with the key ${first}: ${rotated}`,
    `values under the key ${first}: ${byKey.get(first) ?? 0}`,
    ...others.map((id) => lineOf(id, byKey.get(id) ?? 0)),
    ...foreign.map(
      (id) => `values under the key ${id}, which is not in FIRELOCK_SECRET_KEYS: ${byKey.get(id) ?? 0}`,
    ),
    ...unreadable.map(
      ({ uid, version, error }) => `version ${version} of ${uid} left alone: ${reasonOf(error)}`,
    ),
  ];
}

function lineOf(id: string, left: number): string {
  return left === 0
    ? `values under the key ${id}: 0; if no instance encrypts with it any more, it can be removed`
    : `values under the key ${id}: ${left}, which could not be decrypted or were locked; run it again`;
}
