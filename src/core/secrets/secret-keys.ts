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
