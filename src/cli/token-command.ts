import { randomInt } from 'node:crypto';
import type { Instant } from '../core/instant.ts';
import { EXPIRY_RULE, parseExpiry, tokenLine } from '../core/access/token-lines.ts';
import { ROLES, TOKEN_NAME_RULE, isRole, isTokenName } from '../core/access/roles.ts';
import { createToken, tokenHash } from '../core/access/token.ts';

interface Asked {
  names: readonly string[];
  role?: string;
  expires?: string;
}

interface Surroundings {
  now: Instant;
  /** Prints the token, then its line, and nothing else. */
  print: (line: string) => void;
  explain: (line: string) => void;
}

/** The command `firelock token create`; answers the exit code. Neither the token nor its line is kept anywhere. */
export function createTokenCommand(asked: Asked, { now, print, explain }: Surroundings): number {
  const read = readArguments(asked, now);
  if ('faults' in read) {
    for (const fault of read.faults) explain(`firelock token create: ${fault}`);
    return 2;
  }
  const token = createToken((end) => randomInt(end));
  explain('The token, which is shown only now, and its line for FIRELOCK_API_TOKENS or the file');
  explain('FIRELOCK_API_TOKENS_FILE:');
  print(token);
  print(tokenLine({ ...read, hash: tokenHash(token) }));
  return 0;
}

function readArguments({ names, role = '', expires }: Asked, now: Instant) {
  const [name = '', ...others] = names;
  const expiresAt = expires === undefined ? null : parseExpiry(expires);
  const faults: string[] = [];
  if (!isTokenName(name)) faults.push(`NAME must be ${TOKEN_NAME_RULE}`);
  if (others.length > 0) faults.push(`one NAME only, and not also ${others.join(' ')}`);
  if (!isRole(role)) faults.push(`--role must be one of ${ROLES.join(', ')}`);
  if (expiresAt === undefined) faults.push(`--expires must be ${EXPIRY_RULE}`);
  else if (expiresAt !== null && expiresAt <= now) faults.push('--expires must be in the future');
  if (faults.length > 0 || !isRole(role) || expiresAt === undefined) return { faults };
  return { name, role, expiresAt };
}
