import {
  type KeyObject,
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  randomBytes,
} from 'node:crypto';

/** A key that encrypts secrets. */
export interface SecretKey {
  /** Stored beside everything that the key has encrypted. */
  id: string;
  bytes: Buffer;
}

export const SECRET_KEY_BYTES = 32;
const KEY_ID = /^[A-Za-z0-9._-]{1,64}$/;
const KEY_ID_RULE = '1 to 64 letters (A-Z, a-z), digits, dots, dashes or underscores';

interface KeyFault {
  /** The id of the key if it has one, otherwise the position of its entry. */
  entry: string;
  message: string;
}

/** Keys from `keyId:base64, …`, and all faults. No fault repeats text that may be a key. */
export function parseSecretKeys(text: string): [keys: SecretKey[], faults: KeyFault[]] {
  const keys: SecretKey[] = [];
  const faults: KeyFault[] = [];
  for (const [index, entry] of text.split(',').entries()) {
    const [id = '', base64] = entry.trim().split(':', 2);
    const bytes = strictBase64(base64 ?? '');
    const key = { id, bytes: bytes ?? Buffer.alloc(0) };
    const message = base64 === undefined ? NO_COLON : (faultOf(key, bytes) ?? repeated(key, keys));
    if (message === null) keys.push(key);
    else faults.push({ entry: base64 !== undefined && KEY_ID.test(id) ? id : `entry ${index + 1}`, message });
  }
  return [keys, faults];
}

const NO_COLON = 'has no colon between the id of a key and the key';

function faultOf({ id }: SecretKey, bytes: Buffer | null): string | null {
  if (!KEY_ID.test(id)) return `has an id that is not ${KEY_ID_RULE}`;
  if (bytes === null) return 'is not base64';
  return bytes.length === SECRET_KEY_BYTES ? null : `has ${bytes.length} bytes, and not ${SECRET_KEY_BYTES}`;
}

function repeated({ id, bytes }: SecretKey, earlier: readonly SecretKey[]): string | null {
  if (earlier.some((key) => key.id === id)) return 'is the id of an earlier key too';
  return earlier.some((key) => key.bytes.equals(bytes)) ? 'is the same key as an earlier one' : null;
}

/** Null: not base64 as RFC 4648 §4 writes it, with its padding. */
function strictBase64(text: string): Buffer | null {
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? bytes : null;
}

const PREFIX = 'whsec_';
const MIN_BYTES = 24;
const MAX_BYTES = 64;

export const WEBHOOK_SECRET_RULE = `"${PREFIX}" and base64 of ${MIN_BYTES} to ${MAX_BYTES} bytes`;

/** The bytes of a signing secret, as Standard Webhooks writes it; null: the text is no secret. */
export function webhookKey(secret: string): Buffer | null {
  if (!secret.startsWith(PREFIX)) return null;
  const bytes = strictBase64(secret.slice(PREFIX.length));
  return bytes !== null && bytes.length >= MIN_BYTES && bytes.length <= MAX_BYTES ? bytes : null;
}

/** A text as it is stored: encrypted, with the id of its key. */
export interface SealedText {
  keyId: string;
  /** Nonce, ciphertext and tag, in base64. */
  sealed: string;
}

/**
 * A text that only the target may see: encrypted, or as a caller has just sent it. A target that can be sent has `string` in its place:
 * `Target<string>`.
 */
export type SecretText = string | SealedText;

/** The keys of this process. The first encrypts, all decrypt. */
export interface KeyRing {
  /** The id of the key that encrypts; null: there is none, so nothing can be stored encrypted. */
  readonly sealsWith: string | null;
  has(keyId: string): boolean;
  /**
   * Encrypts. The result can be opened only with the same `boundTo`: a copy elsewhere is worthless.
   * @throws Error if there is no key
   */
  seal(text: string, boundTo: string): SealedText;
  /** @throws CannotOpen */
  open(text: SealedText, boundTo: string): string;
  /** A digest that only a holder of the key can compute, or compare guesses with. @throws Error if there is no key */
  fingerprint(text: string): Buffer;
}

export class CannotOpen extends Error {
  override readonly name = 'CannotOpen';
}

/** As in NIST SP 800-38D: random, so that one key is good for 2^32 texts. */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const CIPHER = 'aes-256-gcm';

export function createKeyRing(keys: readonly SecretKey[]): KeyRing {
  // Node takes ten times as long with the bytes themselves.
  const byId = new Map(keys.map(({ id, bytes }) => [id, createSecretKey(bytes)]));
  const [first] = byId;
  const sealing = () => {
    if (!first) throw new Error('there is no key to encrypt secrets with');
    return first;
  };
  return {
    sealsWith: first?.[0] ?? null,
    has: (keyId) => byId.has(keyId),
    seal: (text, boundTo) => seal(sealing(), text, boundTo),
    open: (text, boundTo) => {
      const key = byId.get(text.keyId);
      if (!key) {
        const named = JSON.stringify(text.keyId);
        throw new CannotOpen(`is encrypted with the key ${named}, which FIRELOCK_SECRET_KEYS does not have`);
      }
      return open(key, text, boundTo);
    },
    fingerprint: (text) => {
      const [, key] = sealing();
      const derived = hkdfSync('sha256', key, '', 'firelock fingerprint', SECRET_KEY_BYTES);
      return createHmac('sha256', Buffer.from(derived)).update(text).digest();
    },
  };
}

function seal([keyId, key]: [string, KeyObject], text: string, boundTo: string): SealedText {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(boundTo));
  const encrypted = [cipher.update(text, 'utf8'), cipher.final()];
  return { keyId, sealed: Buffer.concat([nonce, ...encrypted, cipher.getAuthTag()]).toString('base64') };
}

/** Every fault, also of an object that another program wrote, is one error that says nothing about the content. */
function open(key: KeyObject, { keyId, sealed }: SealedText, boundTo: string): string {
  try {
    const bytes = Buffer.from(sealed, 'base64');
    const end = bytes.length - TAG_BYTES;
    const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, NONCE_BYTES), {
      authTagLength: TAG_BYTES,
    });
    decipher.setAAD(Buffer.from(boundTo)).setAuthTag(bytes.subarray(end));
    return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, end)), decipher.final()]).toString();
  } catch {
    throw new CannotOpen(
      `cannot be decrypted with the key ${JSON.stringify(keyId)}: it was changed, or it was encrypted for something else`,
    );
  }
}
