import { type HandoffTarget, type HttpCall, type HttpTarget, destinationOf } from './schedule.ts';
import type { KeyRing } from '../secrets/key-ring.ts';
import {
  type Credential,
  type MapValues,
  type ReadFile,
  type SealedPlace,
  checkChosen,
  isSecretFile,
  keyIdsOf,
  openAt,
  openValue,
  replaceFile,
  resealValues,
  sealValues,
  valueOfFile,
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
    case 'none':
      return target;
  }
}

function mapHttp<A, B>(target: HttpTarget<A>, replace: (value: A, place: SecretPlace) => B): HttpTarget<B> {
  const { connection, url, body, secret, lookup, cancel } = target;
  const destination = destinationOf(connection, url);
  const headersOf = (call: HttpCall<A>, above: readonly string[] = []) =>
    mapNamed(call.headers, (value, name) =>
      replace(value, {
        steps: [...above, 'headers', name],
        destination: destinationOf(connection, call.url),
      }),
    );
  const secretAt = (value: A, ...steps: string[]) => replace(value, { steps: ['secret', ...steps], destination });
  return {
    ...target,
    headers: headersOf(target),
    body: mapBody(body, (value, name) => replace(value, { steps: ['body', 'secrets', name], destination })),
    secret: Array.isArray(secret)
      ? secret.map((one: A, index) => secretAt(one, String(index)))
      : secret === null
        ? null
        : secretAt(secret),
    lookup: lookup && { ...lookup, headers: headersOf(lookup, ['lookup']) },
    cancel: cancel && { ...cancel, headers: headersOf(cancel, ['cancel']) },
  };
}

function mapBody<A, B>(body: HttpTarget<A>['body'], replace: (value: A, name: string) => B): HttpTarget<B>['body'] {
  if (typeof body === 'string') return body;
  const { secrets, ...text } = body;
  return secrets === undefined ? text : { ...text, secrets: mapNamed(secrets, replace) };
}

function mapNamed<A, B>(values: Record<string, A>, replace: (value: A, name: string) => B): Record<string, B> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, replace(value, name)]));
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

/** Of the name of a file; neither stands for a value. */
function filePlace(uid: string, { steps, destination }: SecretPlace): SealedPlace {
  return { steps, boundTo: JSON.stringify(['firelock file', uid, destination, ...inAnyCase(steps)]) };
}

/** Headers are the same in any letter case, names in a body are not. */
function inAnyCase(steps: readonly string[]): readonly string[] {
  return steps[0] === 'body' ? steps : steps.map((step) => step.toLowerCase());
}

/** The secret values of targets under this uid. */
const valuesOf =
  (uid: string): MapValues<HandoffTarget> =>
  (target, replace) =>
    mapSecrets(target, (value: Credential, place): Credential =>
      isSecretFile(value)
        ? replaceFile(value, filePlace(uid, place), replace)
        : replace(value, sealedPlace(uid, place)),
    );

function sealedPlace(uid: string, place: SecretPlace): SealedPlace {
  return { steps: place.steps, boundTo: boundTo(uid, place) };
}

/**
 * The target in the form in which it is sent: the same object if it has no secret values, since many schedules may share it.
 * Without `readFile` a file's name stands for its content: for whoever does not send it.
 * @throws CannotOpen, which names the field and the key
 */
export function openTarget(
  ring: KeyRing,
  uid: string,
  target: HandoffTarget,
  readFile: ReadFile | null = null,
): HandoffTarget<string> {
  if (hasNoSecrets(target)) return target;
  return mapSecrets(target, (value, place) => {
    if (!isSecretFile(value)) return openAt(ring, value, sealedPlace(uid, place), '/target');
    checkChosen(ring, value, filePlace(uid, place), '/target');
    if (readFile === null) return JSON.stringify({ file: value.file });
    const faultOf = (text: string) => (text === '' ? 'is empty' : null);
    return valueOfFile(value, `/target/${place.steps.join('/')}`, { readFile, faultOf });
  });
}

/** The files of FIRELOCK_SECRETS_DIR that it names. */
export function filesNamedBy(target: HandoffTarget): string[] {
  const names: string[] = [];
  mapSecrets(target, (value) => isSecretFile(value) && names.push(value.file));
  return names;
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
    case 'none':
      return target;
  }
}

function withoutValues(target: HttpTarget): HttpTarget<string> {
  const { lookup, cancel } = target;
  const bare = { headers: {} };
  return {
    ...target,
    ...bare,
    body: mapBody(target.body, () => ''),
    secret: null,
    lookup: lookup && { ...lookup, ...bare },
    cancel: cancel && { ...cancel, ...bare },
  };
}

/** See `sealValues`. `before`: the present target of the schedule; null: there is none. */
export function sealTarget<Given extends HandoffTarget>(
  given: Given,
  { ring, uid, before }: { ring: KeyRing; uid: string; before: HandoffTarget | null },
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
      // Names of files are no secret.
      values.set(key, isSecretFile(value) ? value.file : openValue(ring, value, boundTo(uid, place)));
    } catch {
      values.set(key, null);
    }
  });
  return values;
}
