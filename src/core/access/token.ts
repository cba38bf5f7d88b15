import { createHash } from 'node:crypto';
import { type Instant, isoInstant } from '../instant.ts';
import { type Role, isRole, isTokenName, ROLES, TOKEN_NAME_RULE } from './roles.ts';
import { type Scope, parseScope, SCOPE_RULE, scopeText } from './scope.ts';

const PREFIX = 'flk_';
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const SECRET_LENGTH = 30;
const CHECK_LENGTH = 6;
const FORM = new RegExp(`^${PREFIX}([${DIGITS}]{${SECRET_LENGTH}})([${DIGITS}]{${CHECK_LENGTH}})$`);

/**
 * A new token: `flk_`, 30 random base62 characters (178 bits), and their CRC32 in 6 more. So scanners of source code
 * recognise it, and a typing error differs from a revoked token.
 * @param randomBelow a random whole number below its argument, from a source that cannot be guessed
 */
export function createToken(randomBelow: (end: number) => number): string {
  const secret = Array.from({ length: SECRET_LENGTH }, () => DIGITS.charAt(randomBelow(DIGITS.length))).join('');
  return PREFIX + secret + checkOf(secret);
}

/** The kind of text that was sent as a token. `mistyped`: it has the form of a token and a wrong checksum. */
export function tokenForm(text: string): 'token' | 'mistyped' | 'other' {
  const [, secret, check] = FORM.exec(text) ?? [];
  if (secret === undefined) return 'other';
  return checkOf(secret) === check ? 'token' : 'mistyped';
}

/** The only thing that the daemon knows about a token. It needs no salt and no slow hash: 2^178 tokens are too many to try. */
export function tokenHash(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

function checkOf(secret: string): string {
  let rest = crc32(secret);
  let text = '';
  for (let place = 0; place < CHECK_LENGTH; place += 1) {
    text = DIGITS.charAt(rest % DIGITS.length) + text;
    rest = Math.floor(rest / DIGITS.length);
  }
  return text;
}

/** The CRC of ISO 3309, as in zip and PNG; of ASCII text. */
function crc32(text: string): number {
  let crc = 0xffffffff;
  for (let index = 0; index < text.length; index += 1) {
    crc ^= text.charCodeAt(index);
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}

/** What the daemon knows about one token. */
export interface ApiToken {
  readonly name: string;
  readonly role: Role;
  readonly scope: Scope;
  /** SHA-256 of the token. */
  readonly hash: Buffer;
  /** The token is refused from this moment on; null: it does not expire. */
  readonly expiresAt: Instant | null;
}

/** A line as it was found; `place` names its place in words. */
interface TokenLine {
  readonly text: string;
  readonly place: string;
}

/** Reads a list of lines that are separated by commas. An instant contains colons, and no comma. */
export function splitTokenList(list: string, source: string): TokenLine[] {
  return list
    .split(',')
    .map((text, index) => ({ text: text.trim(), place: `${source}, entry ${index + 1}` }))
    .filter(({ text }) => text !== '');
}

/** Reads a file with one line for each token; a `#` begins a comment. */
export function splitTokenFile(content: string, source: string): TokenLine[] {
  return content
    .split(/\r?\n/)
    .map((line, index) => ({
      text: line.replace(/#.*$/, '').trim(),
      place: `${source}, line ${index + 1}`,
    }))
    .filter(({ text }) => text !== '');
}

/** The tokens, or every fault. A fault never quotes the text: a secret may be in a wrong place. */
export function parseTokenLines(lines: readonly TokenLine[]): { tokens: ApiToken[]; faults: string[] } {
  const tokens: ApiToken[] = [];
  const faults: string[] = [];
  const placeOf = new Map<string, string>();
  for (const { text, place } of lines) {
    const [name = '', rights = '', hash = '', ...rest] = text.split(':');
    const { role, scope } = readRights(rights);
    // A text without separators may be anything, even a token.
    const known = hash !== '' && isTokenName(name) ? `${place} (${name})` : place;
    const expires = rest.length === 0 ? null : parseExpiry(rest.join(':'));
    const wrong = faultsOf({ name, role, scope, hash, expires });
    const first = placeOf.get(hash.toLowerCase());
    if (wrong.length === 0 && first !== undefined) wrong.push(`it has the same hash as ${first}`);
    faults.push(...wrong.map((fault) => `${known}: ${fault}`));
    if (wrong.length > 0 || !isRole(role) || scope === undefined || expires === undefined) continue;
    placeOf.set(hash.toLowerCase(), known);
    tokens.push({ name, role, scope, hash: Buffer.from(hash, 'hex'), expiresAt: expires });
  }
  return { tokens, faults };
}

/** The line of a token, as parseTokenLines reads it. */
export function tokenLine({ name, role, scope, hash, expiresAt }: ApiToken): string {
  const rights = scope === null ? role : `${role}[${scopeText(scope)}]`;
  const line = `${name}:${rights}:${hash.toString('hex')}`;
  return expiresAt === null ? line : `${line}:${isoInstant(expiresAt)}`;
}

/** A role, and perhaps a scope: `operator[billing.|ops.]`. Undefined: the scope breaks SCOPE_RULE. */
function readRights(rights: string): { role: string; scope: Scope | undefined } {
  const [, role = '', list] = /^([^[]*)(?:\[(.*)\])?$/.exec(rights) ?? [];
  return { role, scope: list === undefined ? null : (parseScope(list) ?? undefined) };
}

export const EXPIRY_RULE = 'an instant such as 2027-01-31T00:00:00Z';

/** Undefined: the text is no instant. */
export function parseExpiry(text: string): Instant | undefined {
  const [, date = ''] = EXPIRY.exec(text) ?? [];
  if (date === '') return undefined;
  // Date.parse takes 30 February for 2 March.
  const midnight = Date.parse(`${date}T00:00Z`);
  const at = Date.parse(text);
  if (Number.isNaN(midnight) || Number.isNaN(at) || !isoInstant(midnight).startsWith(date)) return undefined;
  return at;
}

const EXPIRY = /^(\d{4}-\d\d-\d\d)T\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d)$/;

interface Parts {
  name: string;
  role: string;
  scope: Scope | undefined;
  hash: string;
  expires: Instant | null | undefined;
}

function faultsOf({ name, role, scope, hash, expires }: Parts): string[] {
  const faults: string[] = [];
  if (!isTokenName(name)) faults.push(`its name must be ${TOKEN_NAME_RULE}`);
  if (!isRole(role)) faults.push(`its role must be one of ${ROLES.join(', ')}`);
  if (scope === undefined) faults.push(`its scope must be ${SCOPE_RULE}`);
  if (hash.startsWith('flk_')) {
    faults.push('it holds a token; the daemon must get the SHA-256 of the token only');
  } else if (!/^[\da-f]{64}$/i.test(hash)) {
    faults.push('its hash must be the SHA-256 of the token: 64 hexadecimal digits');
  }
  if (expires === undefined) faults.push(`its end must be ${EXPIRY_RULE}`);
  return faults;
}
