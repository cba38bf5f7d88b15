import { z } from 'zod';
import type { Role } from '../../core/access/roles.ts';
import { type Scope, beyondScope, sees } from '../../core/access/scope.ts';
import type { KeyRing } from '../../core/secrets/key-ring.ts';
import { type Credential, isSecretFile } from '../../core/secrets/sealed-values.ts';
import type { Fault } from '../http/problem.ts';

/** Who names files, and where. */
export interface FileRules {
  secrets: KeyRing;
  scope: Scope;
  /** There is FIRELOCK_SECRETS_DIR. */
  takesSecretFiles: boolean;
  /** Who names a file for a host has its content sent there: an operator, whom no scope bounds, may not name any. */
  mayName: boolean;
}

/** What all calls of a server have in common. Definitions are written by admins alone. */
export function fileRules(
  { secrets, takesSecretFiles }: Pick<FileRules, 'secrets' | 'takesSecretFiles'>,
  scope: Scope,
  role: Role = 'admin',
): FileRules {
  return { secrets, takesSecretFiles, scope, mayName: role === 'admin' || scope !== null };
}

/** A secret value of what is stored now. */
interface StoredValue {
  value: Credential;
  /** Since the change that is asked for. */
  goesElsewhere: boolean;
}

interface Naming {
  path: string;
  /** At this place, and all. */
  before: StoredValue | undefined;
  stored: readonly StoredValue[];
  faults: Fault[];
  /** Of what is well-formed and not allowed. */
  impossible: Fault[];
}

/** A file that a caller names for a value, in the form in which it is stored, still without its proof. */
export function resolveFile(
  { file }: { file: string },
  { path, before, stored, faults, impossible }: Naming,
  { secrets, scope, takesSecretFiles, mayName }: FileRules,
): Credential {
  const named = stored.filter(({ value }) => isSecretFile(value) && value.file === file);
  const kept = before !== undefined && named.includes(before) ? before : null;
  if (named.length === 0 && !takesSecretFiles) impossible.push({ path, message: NO_DIRECTORY });
  if ((kept === null || kept.goesElsewhere) && !sees(scope, file))
    impossible.push({ path, message: `${beyondScope(scope)}: ${OF_FILES}` });
  if (kept === null && !mayName) impossible.push({ path, message: FOR_ADMINS });
  if (named.length > 0 && named.every(({ goesElsewhere }) => goesElsewhere)) faults.push({ path, message: FILE_MOVED });
  else if (kept !== null) {
    // With its proof, also if that does not fit: a row that was edited in the database gets no new proof by being sent back.
    if (isSecretFile(kept.value) && kept.value.seal === null && secrets.sealsWith !== null)
      faults.push({ path, message: UNPROVEN });
    return kept.value;
  }
  return { file, seal: null };
}

const FILE_MOVED =
  'names a file whose content goes to another origin so far: whoever may edit this could have it sent elsewhere, by its name ' +
  'alone; take it away first, or name another file';
const UNPROVEN =
  'names a file that is stored without a proof of who named it: there was no key, or the row was edited in the database; ' +
  'name another file first, and then this one again';
const FOR_ADMINS = 'only an admin names a secret file, or a caller with a scope one of its own';
const OF_FILES = 'the name of a secret file begins with one of its prefixes, or with shared.';
const NO_DIRECTORY =
  'cannot name a file: there is no directory of secrets; set FIRELOCK_SECRETS_DIR (docs/connections.md)';

const MAX_FILE_NAME_LENGTH = 255;

export const secretFile = z
  .strictObject({
    file: z
      .string()
      .max(MAX_FILE_NAME_LENGTH)
      .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*(\/[A-Za-z0-9][A-Za-z0-9._-]*)*$/, {
        error:
          'must be a name, or several with slashes between them, each of letters (A-Z, a-z), digits, dots, dashes or ' +
          'underscores, and begin with a letter or digit',
      })
      .meta({ example: 'github-token' }),
  })
  .meta({ id: 'SecretFile', description: 'A file of `FIRELOCK_SECRETS_DIR`, whose content is the value.' });

/** A secret value, or the name of a file that has it. */
export function orFile(text: z.ZodString, description: string) {
  return z
    .union([text, secretFile], {
      error: ({ input }) => (input === undefined ? 'is required' : 'must be a string, or {"file": "NAME"}'),
    })
    .meta({ description });
}
