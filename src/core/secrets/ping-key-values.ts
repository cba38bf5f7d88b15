import type { KeyRing, SecretText } from './key-ring.ts';
import { type MapValues, keyIdsOf, openValue, resealValues } from './sealed-values.ts';

/** The key of an observed schedule, by its uid; encrypted wherever there is a key to encrypt it with. */
interface OfPingKey {
  uid: string;
  key: SecretText;
}

const valuesOf: MapValues<OfPingKey> = ({ uid, key }, replace) => ({
  uid,
  key: replace(key, { steps: ['pingKey'], boundTo: boundTo(uid), mayStayPlain: true }),
});

export function sealPingKey(ring: KeyRing | undefined, uid: string, key: string): SecretText {
  return typeof ring?.sealsWith === 'string' ? ring.seal(key, boundTo(uid)) : key;
}

/** Null: no key of this process decrypts it. */
export function openPingKey(ring: KeyRing, { uid, key }: OfPingKey): string | null {
  try {
    return openValue(ring, key, boundTo(uid));
  } catch {
    return null;
  }
}

export function resealPingKey(ring: KeyRing, stored: OfPingKey): OfPingKey {
  return resealValues(valuesOf, stored, ring);
}

export function keyIdsOfPingKey(stored: OfPingKey): string[] {
  return keyIdsOf(valuesOf, stored);
}

function boundTo(uid: string): string {
  return `schedule ${uid} pingKey`;
}
