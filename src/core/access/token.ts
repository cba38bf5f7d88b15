import { createHash } from 'node:crypto';

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
  const secret = Array.from({ length: SECRET_LENGTH }, () => DIGITS.charAt(randomBelow(DIGITS.length))).join(
    '',
  );
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
