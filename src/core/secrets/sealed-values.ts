import { type KeyRing, type SealedText, type SecretText, CannotOpen } from './key-ring.ts';

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
export type MapValues<Thing> = (thing: Thing, replace: (value: SecretText, place: SealedPlace) => SecretText) => Thing;

/** @throws CannotOpen */
export function openValue(ring: KeyRing, value: SecretText, boundTo: string): string {
  return typeof value === 'object' ? ring.open(value, boundTo) : value;
}

/** @throws CannotOpen, which names the place below `root`, and the key */
export function openAt(ring: KeyRing, value: SecretText, { steps, boundTo }: SealedPlace, root: string): string {
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

/** A file of FIRELOCK_SECRETS_DIR, whose content is a secret value. */
export interface SecretFile {
  file: string;
  /** Proves that a holder of the key chose this file for this place; null: no key was configured. */
  seal: SealedText | null;
}

/** A secret value as it is stored. */
export type Credential = SecretText | SecretFile;

export function isSecretFile(value: unknown): value is SecretFile {
  return typeof value === 'object' && value !== null && 'file' in value;
}

/** Of a file the name is encrypted, beside itself: the result proves who chose it. */
export function replaceFile(
  { file, seal }: SecretFile,
  place: SealedPlace,
  replace: (value: SecretText, place: SealedPlace) => SecretText,
): SecretFile {
  const name = replace(seal ?? file, { ...place, mayStayPlain: true });
  return { file, seal: typeof name === 'object' ? name : null };
}

/** @throws CannotOpen unless a holder of the key chose this file for this place */
export function checkChosen(ring: KeyRing, { file, seal }: SecretFile, place: SealedPlace, root = ''): void {
  const named = `${root}/${place.steps.join('/')} names the file ${JSON.stringify(file)}`;
  if (seal === null && ring.sealsWith !== null)
    throw new CannotOpen(
      `${named} without a proof that a holder of the key chose it: name another file, and then this one again`,
    );
  if (seal !== null && openAt(ring, seal, place, root) !== file)
    throw new CannotOpen(`${named}, which is not the one that was chosen: it was changed in the database`);
}

/** Answers the content of a file of FIRELOCK_SECRETS_DIR, and throws if there is none. */
export type ReadFile = (name: string) => string;

/** Line breaks at its end do not count. `faultOf`: why it cannot be the value. @throws CannotOpen */
export function valueOfFile(
  { file }: SecretFile,
  at: string,
  { readFile, faultOf }: { readFile: ReadFile; faultOf: (text: string) => string | null },
): string {
  const refused = (why: string) =>
    new CannotOpen(`${at} cannot be taken from the file ${JSON.stringify(file)}: ${why}`);
  let text: string;
  try {
    text = readFile(file).replace(/[\r\n]+$/, '');
  } catch (error) {
    throw refused(error instanceof Error ? error.message : String(error));
  }
  const fault = faultOf(text);
  if (fault !== null) throw refused(`it ${fault}`);
  return text;
}

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
