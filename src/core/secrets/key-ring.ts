import {
  type KeyObject,
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  randomBytes,
} from 'node:crypto';
import { SECRET_KEY_BYTES, type SecretKey } from './secret-keys.ts';

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
