import { type SecretText, CannotOpen, type KeyRing } from './key-ring.ts';

/** Where a secret value stands. */
export interface SealedPlace {
  /** The members that lead to it from what contains it, such as `lookup`, `headers`, `X-Key`. */
  steps: readonly string[];
  /** What it is bound to when it is encrypted: anywhere else it cannot be decrypted. */
  boundTo: string;
  /** It is no secret: it is encrypted to prove who wrote it, and may do without where there is no key. */
  mayStayPlain?: true;
}

/** Replaces each secret value of a thing. */
export type MapValues<Thing> = (
  thing: Thing,
  replace: (value: SecretText, place: SealedPlace) => SecretText,
) => Thing;

/** @throws CannotOpen */
export function openValue(ring: KeyRing, value: SecretText, boundTo: string): string {
  return typeof value === 'object' ? ring.open(value, boundTo) : value;
}

/** @throws CannotOpen, which names the place below `root`, and the key */
export function openAt(
  ring: KeyRing,
  value: SecretText,
  { steps, boundTo }: SealedPlace,
  root: string,
): string {
  try {
    return openValue(ring, value, boundTo);
  } catch (error) {
    if (!(error instanceof CannotOpen)) throw error;
    throw new CannotOpen(`${root}/${steps.join('/')} ${error.message}`);
  }
}

/**
 * A thing as it is stored, and the places of values that cannot be encrypted without a key. A value that equals one of
 * `before` in its place stays as it is stored, so that the same thing sent again equals the stored one.
 */
export function sealValues<Thing>(
  map: MapValues<Thing>,
  given: Thing,
  { ring, before }: { ring: KeyRing; before: Thing | null },
): { sealed: Thing; unsealed: SealedPlace[] } {
  const unsealed: SealedPlace[] = [];
  let known: Known | undefined;
  const sealed = map(given, (value, place): SecretText => {
    if (typeof value !== 'string') return value;
    known ??= before === null ? new Map<string, SecretText[]>() : knownValues(map, before);
    const kept = known.get(place.boundTo)?.find((one) => saysThis(ring, one, place.boundTo, value));
    if (kept !== undefined && (typeof kept === 'object' || ring.sealsWith === null)) return kept;
    if (ring.sealsWith !== null) return ring.seal(value, place.boundTo);
    if (place.mayStayPlain !== true) unsealed.push(place);
    return value;
  });
  return { sealed, unsealed };
}

/** By what they are bound to. */
type Known = ReadonlyMap<string, SecretText[]>;

function knownValues<Thing>(map: MapValues<Thing>, thing: Thing): Known {
  const known = new Map<string, SecretText[]>();
  map(thing, (value, { boundTo }) => {
    known.set(boundTo, [...(known.get(boundTo) ?? []), value]);
    return value;
  });
  return known;
}

function saysThis(ring: KeyRing, stored: SecretText, boundTo: string, text: string): boolean {
  try {
    return openValue(ring, stored, boundTo) === text;
  } catch {
    return false;
  }
}

/** The thing with everything encrypted by the present key. A value that cannot be opened stays as it is. */
export function resealValues<Thing>(map: MapValues<Thing>, thing: Thing, ring: KeyRing): Thing {
  return map(thing, (value, { boundTo }) => {
    if (typeof value === 'string' || ring.sealsWith === null || value.keyId === ring.sealsWith) return value;
    try {
      return ring.seal(ring.open(value, boundTo), boundTo);
    } catch {
      return value;
    }
  });
}

/** The key of each of its encrypted values. */
export function keyIdsOf<Thing>(map: MapValues<Thing>, thing: Thing): string[] {
  const ids: string[] = [];
  map(thing, (value) => {
    if (typeof value === 'object') ids.push(value.keyId);
    return value;
  });
  return ids;
}
