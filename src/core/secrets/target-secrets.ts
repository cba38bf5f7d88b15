import { originOf } from '../http/template.ts';
import type { HttpCall, HttpTarget, SecretText, Target } from '../schedules/schedule.ts';
import { CannotOpen, type KeyRing } from './key-ring.ts';

/** The place of a secret value in a target. */
interface SecretPlace {
  /** The members that lead to it from the target, such as `lookup`, `headers`, `X-Key`. */
  steps: readonly string[];
  /** The origin of the URL to which the value goes. */
  origin: string | null;
}

/** The target with each of its secret values replaced: header values, and signing secrets. */
export function mapSecrets<A, B>(target: Target<A>, replace: (value: A, place: SecretPlace) => B): Target<B> {
  if (target.type === 'pull') return target;
  const callOf = (name: 'lookup' | 'cancel', call: HttpCall<A> | null) =>
    call && { ...call, headers: mapHeaders(call, [name], replace) };
  const { lookup, cancel } = target;
  return {
    ...target,
    headers: mapHeaders(target, [], replace),
    secret: mapSecret(target, replace),
    lookup: callOf('lookup', lookup),
    cancel: callOf('cancel', cancel),
  };
}

function mapHeaders<A, B>(
  { url, headers }: HttpCall<A>,
  above: readonly string[],
  replace: (value: A, place: SecretPlace) => B,
): Record<string, B> {
  const origin = originOf(url);
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => {
      return [name, replace(value, { steps: [...above, 'headers', name], origin })];
    }),
  );
}

function mapSecret<A, B>(
  { url, secret }: HttpTarget<A>,
  replace: (value: A, place: SecretPlace) => B,
): HttpTarget<B>['secret'] {
  const origin = originOf(url);
  if (Array.isArray(secret)) {
    return secret.map((one: A, index) => replace(one, { steps: ['secret', String(index)], origin }));
  }
  return secret === null ? null : replace(secret, { steps: ['secret'], origin });
}

/** Whether it contains a value that answers mask. */
export function hasSecrets(target: Target<unknown>): boolean {
  let found = false;
  mapSecrets(target, () => (found = true));
  return found;
}

/**
 * What a value is bound to when it is encrypted: the uid of the schedule (or of the definition of one-off runs), the
 * origin to which it goes, and its place. So a person who can write to the database, and has no key, cannot have a
 * value sent elsewhere. A header's letter case does not count, nor does the position of a secret.
 */
function boundTo(uid: string, { steps, origin }: SecretPlace): string {
  const place = steps[0] === 'secret' ? ['secret'] : steps.map((step) => step.toLowerCase());
  return JSON.stringify(['firelock', uid, origin, ...place]);
}

/** @throws CannotOpen */
function read(ring: KeyRing, uid: string, value: SecretText, place: SecretPlace): string {
  return typeof value === 'object' ? ring.open(value, boundTo(uid, place)) : value;
}

/**
 * The target in the form in which it is sent: the same object if it has no secret values, since many schedules may share it.
 * @throws CannotOpen, which names the field and the key
 */
export function openTarget(ring: KeyRing, uid: string, target: Target): Target<string> {
  if (hasNoSecrets(target)) return target;
  return mapSecrets(target, (value, place) => {
    try {
      return read(ring, uid, value, place);
    } catch (error) {
      if (!(error instanceof CannotOpen)) throw error;
      throw new CannotOpen(`/target/${place.steps.join('/')} ${error.message}`);
    }
  });
}

function hasNoSecrets(target: Target): target is Target<string> {
  return !hasSecrets(target);
}

/** For code that must look at a target that cannot be opened, and that sends nothing. */
export function withoutSecrets(target: Target): Target<string> {
  if (target.type === 'pull') return target;
  const { lookup, cancel } = target;
  const bare = { headers: {} };
  return {
    ...target,
    ...bare,
    secret: null,
    lookup: lookup && { ...lookup, ...bare },
    cancel: cancel && { ...cancel, ...bare },
  };
}

interface Sealing {
  ring: KeyRing;
  uid: string;
  /** The present target of the schedule; null: there is none. */
  before: Target | null;
}

/**
 * A target as it is stored, and the places of values that cannot be encrypted without a key. A value that equals the
 * present one stays as it is stored, so that the same definition sent again equals the stored one.
 */
export function sealTarget(
  given: Target,
  { ring, uid, before }: Sealing,
): { target: Target; unsealed: SecretPlace[] } {
  const unsealed: SecretPlace[] = [];
  const known = before && hasSecrets(given) ? knownValues(uid, before) : null;
  const target = mapSecrets(given, (value: SecretText, place): SecretText => {
    if (typeof value !== 'string') return value;
    const kept = known?.get(boundTo(uid, place))?.find((one) => saysThis(ring, uid, one, place, value));
    if (kept !== undefined) return kept;
    if (ring.sealsWith !== null) return ring.seal(value, boundTo(uid, place));
    unsealed.push(place);
    return value;
  });
  return { target, unsealed };
}

function knownValues(uid: string, target: Target): ReadonlyMap<string, SecretText[]> {
  const known = new Map<string, SecretText[]>();
  mapSecrets(target, (value, place) => {
    const key = boundTo(uid, place);
    known.set(key, [...(known.get(key) ?? []), value]);
  });
  return known;
}

function saysThis(ring: KeyRing, uid: string, stored: SecretText, place: SecretPlace, text: string): boolean {
  try {
    return read(ring, uid, stored, place) === text;
  } catch {
    return false;
  }
}

/** The target with everything encrypted by the present key. A value that cannot be opened stays as it is. */
export function resealTarget(ring: KeyRing, uid: string, target: Target): Target {
  return mapSecrets(target, (value, place) => {
    if (typeof value === 'string' || ring.sealsWith === null || value.keyId === ring.sealsWith) return value;
    try {
      return ring.seal(ring.open(value, boundTo(uid, place)), boundTo(uid, place));
    } catch {
      return value;
    }
  });
}

/** The key of each of its encrypted values. */
export function keyIdsIn(target: Target): string[] {
  const ids: string[] = [];
  mapSecrets(target, (value) => typeof value === 'object' && ids.push(value.keyId));
  return ids;
}

/** A target, and the uid under which it is stored. */
interface StoredTarget {
  uid: string;
  target: Target;
}

/**
 * Whether the secret values of two targets are the same, place by place. A value that cannot be opened counts as equal:
 * it can no longer be compared.
 */
export function sameSecrets(ring: KeyRing, a: StoredTarget, b: StoredTarget): boolean {
  const [ofA, ofB] = [readableValues(ring, a), readableValues(ring, b)];
  if (ofA.size !== ofB.size) return false;
  return [...ofA].every(([place, text]) => {
    const other = ofB.get(place);
    return other !== undefined && (text === other || text === null || other === null);
  });
}

/** By place; null: it cannot be opened. */
function readableValues(ring: KeyRing, { uid, target }: StoredTarget): Map<string, string | null> {
  const values = new Map<string, string | null>();
  mapSecrets(target, (value, place) => {
    const key = place.steps.join('/').toLowerCase();
    try {
      values.set(key, read(ring, uid, value, place));
    } catch {
      values.set(key, null);
    }
  });
  return values;
}
