/** A request that is not proven to come from firelock, and why: the secrets differ, or somebody else sent it. */
export class SignatureError extends Error {
  override readonly name = 'SignatureError';
}

/** Reads a header, in any letter case; null where there is none. */
export type HeaderReader = (name: string) => string | null;

export interface SignatureOptions {
  /** How far the time of the signature may be from now, before and after: 300 s unless set. */
  toleranceSeconds?: number;
  /** In milliseconds since 1970. */
  now?: () => number;
}

export type Bytes = Uint8Array<ArrayBuffer>;
type Key = Awaited<ReturnType<typeof crypto.subtle.importKey>>;

const TOLERANCE_SECONDS = 300;

/**
 * Resolves if one of the secrets has signed this body, as Standard Webhooks has it. `body` is what arrived, byte for byte:
 * parsed and written again it is another text. Several secrets: while one takes the place of another.
 * @throws SignatureError where none has; TypeError where a secret is none
 */
export async function verifySignature(
  secrets: string | readonly string[],
  request: { header: HeaderReader; body: Uint8Array | string },
  options?: SignatureOptions,
): Promise<void> {
  await createVerifier(secrets, options)(request.header, bytesOf(request.body));
}

/** For many requests: the secrets are read once. @throws TypeError where a secret is none; the message does not tell it */
export function createVerifier(
  secrets: string | readonly string[],
  { toleranceSeconds = TOLERANCE_SECONDS, now = Date.now }: SignatureOptions = {},
): (header: HeaderReader, body: Bytes) => Promise<void> {
  const parsed = [secrets].flat().map(secretBytes);
  if (parsed.length === 0) throw new TypeError('there is no secret');
  let keys: Promise<Key[]> | undefined;
  return async (header, body) => {
    const signed = signedParts(header);
    const off = Number(signed.timestamp) - now() / 1000;
    if (Math.abs(off) > toleranceSeconds) {
      throw new SignatureError(`the signature is of ${Math.round(Math.abs(off))} s ${off < 0 ? 'ago' : 'to come'}`);
    }
    keys ??= Promise.all(parsed.map(importKey));
    const message = joined(bytesOf(`${signed.id}.${signed.timestamp}.`), body);
    let isRight = false;
    for (const key of await keys) {
      const expected = new Uint8Array(await crypto.subtle.sign('HMAC', key, message));
      // Every pair is compared, whichever is right.
      for (const signature of signed.signatures) isRight = sameBytes(expected, signature) || isRight;
    }
    if (!isRight) throw new SignatureError('no secret has made the signature');
  };
}

function signedParts(header: HeaderReader): { id: string; timestamp: string; signatures: Bytes[] } {
  const id = header('webhook-id');
  const timestamp = header('webhook-timestamp');
  const text = header('webhook-signature');
  if (id === null || timestamp === null || text === null) throw new SignatureError('it is not signed');
  if (!/^\d{1,12}$/.test(timestamp)) throw new SignatureError('webhook-timestamp is no number of seconds');
  const signatures = text
    .split(' ')
    .filter((one) => one.startsWith('v1,'))
    .map((one) => fromBase64(one.slice(3)))
    .filter((one) => one !== null);
  return { id, timestamp, signatures };
}

/** Takes the same time wherever they differ. */
function sameBytes(one: Bytes, other: Bytes): boolean {
  if (one.length !== other.length) return false;
  let difference = 0;
  for (const [index, byte] of one.entries()) difference |= byte ^ (other[index] ?? 0);
  return difference === 0;
}

const PREFIX = 'whsec_';

function secretBytes(secret: string): Bytes {
  const bytes = secret.startsWith(PREFIX) ? fromBase64(secret.slice(PREFIX.length)) : null;
  if (bytes === null || bytes.length < 24 || bytes.length > 64) {
    throw new TypeError(`a secret is "${PREFIX}" and base64 of 24 to 64 bytes`);
  }
  return bytes;
}

function importKey(bytes: Bytes): Promise<Key> {
  return crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
}

function fromBase64(text: string): Bytes | null {
  if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text)) return null;
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

function bytesOf(body: Uint8Array | string): Bytes {
  return typeof body === 'string' ? new TextEncoder().encode(body) : new Uint8Array(body);
}

export function joined(first: Bytes, second: Bytes): Bytes {
  const whole = new Uint8Array(first.length + second.length);
  whole.set(first);
  whole.set(second, first.length);
  return whole;
}
