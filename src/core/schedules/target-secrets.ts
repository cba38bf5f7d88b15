import { destinationOf } from './target-parts.ts';
import type { HandoffTarget, HttpCall, HttpTarget } from './schedule.ts';
import type { SecretText, KeyRing } from '../secrets/key-ring.ts';
import {
  type MapValues,
  type SealedPlace,
  keyIdsOf,
  openAt,
  openValue,
  resealValues,
  sealValues,
} from '../secrets/sealed-values.ts';

/** The place of a secret value in a target. */
interface SecretPlace {
  /** The members that lead to it from the target, such as `lookup`, `headers`, `X-Key`. */
  steps: readonly string[];
  /** Where the value goes (destinationOf). */
  destination: string | null;
}

/** The target with each of its secret values replaced: header values, those of a body, and signing secrets. */
export function mapSecrets<A, B>(
  target: HandoffTarget<A>,
  replace: (value: A, place: SecretPlace) => B,
): HandoffTarget<B> {
  switch (target.type) {
    case 'http':
      return mapHttp(target, replace);
    case 'pull':
    case 'email':
      return target;
  }
}

function mapHttp<A, B>(target: HttpTarget<A>, replace: (value: A, place: SecretPlace) => B): HttpTarget<B> {
  const callOf = (name: 'lookup' | 'cancel', call: HttpCall<A> | null) =>
    call && { ...call, headers: mapHeaders(connection, call, [name], replace) };
  const { connection, lookup, cancel } = target;
  return {
    ...target,
    headers: mapHeaders(connection, target, [], replace),
    body: mapBody(target, replace),
    secret: mapSecret(target, replace),
    lookup: callOf('lookup', lookup),
    cancel: callOf('cancel', cancel),
  };
}

function mapHeaders<A, B>(
  connection: string | null,
  { url, headers }: HttpCall<A>,
  above: readonly string[],
  replace: (value: A, place: SecretPlace) => B,
): Record<string, B> {
  const destination = destinationOf(connection, url);
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => {
      return [name, replace(value, { steps: [...above, 'headers', name], destination })];
    }),
  );
}

function mapBody<A, B>(
  { connection, url, body }: HttpTarget<A>,
  replace: (value: A, place: SecretPlace) => B,
): HttpTarget<B>['body'] {
  if (typeof body === 'string') return body;
  const { secrets, ...text } = body;
  if (secrets === undefined) return text;
  const destination = destinationOf(connection, url);
  const mapped = Object.entries(secrets).map(
    ([name, value]) => [name, replace(value, { steps: ['body', 'secrets', name], destination })] as const,
  );
  return { ...text, secrets: Object.fromEntries(mapped) };
}

function mapSecret<A, B>(
  { connection, url, secret }: HttpTarget<A>,
  replace: (value: A, place: SecretPlace) => B,
): HttpTarget<B>['secret'] {
  const destination = destinationOf(connection, url);
  if (Array.isArray(secret)) {
    return secret.map((one: A, index) => replace(one, { steps: ['secret', String(index)], destination }));
  }
  return secret === null ? null : replace(secret, { steps: ['secret'], destination });
}

/** Whether it contains a value that answers mask. */
export function hasSecrets(target: HandoffTarget<unknown>): boolean {
  let found = false;
  mapSecrets(target, () => (found = true));
  return found;
}

/**
 * What a value is bound to when it is encrypted: the uid of the schedule (or of the definition of one-off runs), the
 * origin or the connection to which it goes, and its place. So a person who can write to the database, and has no key, cannot have a
 * value sent elsewhere. A header's letter case does not count, nor does the position of a secret.
 */
function boundTo(uid: string, { steps, destination }: SecretPlace): string {
  const place = steps[0] === 'secret' ? ['secret'] : inAnyCase(steps);
  return JSON.stringify(['firelock', uid, destination, ...place]);
}

/** Headers are the same in any letter case, names in a body are not. */
function inAnyCase(steps: readonly string[]): readonly string[] {
  return steps[0] === 'body' ? steps : steps.map((step) => step.toLowerCase());
}

/** The secret values of targets under this uid. */
const valuesOf =
  (uid: string): MapValues<HandoffTarget> =>
  (target, replace) =>
    mapSecrets(target, (value: SecretText, place) => replace(value, sealedPlace(uid, place)));

function sealedPlace(uid: string, place: SecretPlace): SealedPlace {
  return { steps: place.steps, boundTo: boundTo(uid, place) };
}

/**
 * The target in the form in which it is sent: the same object if it has no secret values, since many schedules may share it.
 * @throws CannotOpen, which names the field and the key
 */
export function openTarget(ring: KeyRing, uid: string, target: HandoffTarget): HandoffTarget<string> {
  if (hasNoSecrets(target)) return target;
  return mapSecrets(target, (value, place) => openAt(ring, value, sealedPlace(uid, place), '/target'));
}

function hasNoSecrets(target: HandoffTarget): target is HandoffTarget<string> {
  return !hasSecrets(target);
}

/** For code that must look at a target that cannot be opened, and that sends nothing. */
export function withoutSecrets(target: HandoffTarget): HandoffTarget<string> {
  switch (target.type) {
    case 'http':
      return withoutValues(target);
    case 'pull':
    case 'email':
      return target;
  }
}

function withoutValues(target: HttpTarget): HttpTarget<string> {
  const { lookup, cancel } = target;
  const bare = { headers: {} };
  return {
    ...target,
    ...bare,
    body: mapBody(target, () => ''),
    secret: null,
    lookup: lookup && { ...lookup, ...bare },
    cancel: cancel && { ...cancel, ...bare },
  };
}

interface Sealing {
  ring: KeyRing;
  uid: string;
  /** The present target of the schedule; null: there is none. */
  before: HandoffTarget | null;
}

/** See `sealValues`. */
export function sealTarget<Given extends HandoffTarget>(
  given: Given,
  { ring, uid, before }: Sealing,
): { target: Given; unsealed: SealedPlace[] } {
  const { sealed, unsealed } = sealValues(valuesOf(uid), given, { ring, before });
  return { target: sealed as Given, unsealed };
}

/** See `resealValues`. */
export function resealTarget<Given extends HandoffTarget>(ring: KeyRing, uid: string, target: Given): Given {
  return resealValues(valuesOf(uid), target, ring) as Given;
}

/** The key of each of its encrypted values. */
export function keyIdsIn(target: HandoffTarget): string[] {
  return keyIdsOf(valuesOf(''), target);
}

/** A target, and the uid under which it is stored. */
interface StoredTarget {
  uid: string;
  target: HandoffTarget;
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
    const key = inAnyCase(place.steps).join('/');
    try {
      values.set(key, openValue(ring, value, boundTo(uid, place)));
    } catch {
      values.set(key, null);
    }
  });
  return values;
}
