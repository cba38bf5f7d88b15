import {
  type HttpCall,
  type HttpTarget,
  type OutcomeRules,
  type ScheduleTarget,
  type Target,
  destinationOf,
} from '../../core/schedules/schedule.ts';
import { type Credential, isSecretFile } from '../../core/secrets/sealed-values.ts';
import { pointer } from '../../core/json-text.ts';
import { isObject } from '../http/json/json-body.ts';
import type { Fault } from '../http/problem.ts';
import { MASK } from './http-call-schemas.ts';
import type { TargetInput } from './schemas.ts';
import { type AnsweredRules, answerTarget } from './answers.ts';
import { type FileRules, resolveFile } from './secret-files.ts';
import { sealTarget } from '../../core/schedules/target-secrets.ts';

/** What is wrong with a target: with its form, and with what it asks for. */
interface Found {
  faults: Fault[];
  impossible: Fault[];
}

/**
 * A target as sent. Secret values that were sent masked are filled in from the stored target; what is wrong with values is
 * added to `found`.
 */
export function unmaskTarget(
  input: TargetInput,
  stored: ScheduleTarget | null,
  found: Found,
  rules: FileRules,
): Target {
  if (input.type === 'pull') return { type: input.type, queue: input.queue };
  return unmaskHttpTarget(input, stored?.type === 'http' ? stored : null, found, rules);
}

export function unmaskHttpTarget(
  input: Extract<TargetInput, { type: 'http' }>,
  known: HttpTarget | null,
  found: Found,
  rules: FileRules,
): HttpTarget {
  const { faults } = found;
  const { type, connection, secret, lookup, cancel, body, outcome, ...target } = input;
  const placed = (call: HttpCall<string>) => ({ ...call, connection });
  const knownCall = (name: 'lookup' | 'cancel') => known?.[name] && { ...known[name], connection: known.connection };
  const callOf = (name: 'lookup' | 'cancel', call: HttpCall<string>) =>
    unmask(placed(call), knownCall(name) ?? null, `/target/${name}/headers`, faults);
  return {
    type,
    connection,
    ...unmask(placed(target), known, '/target/headers', faults),
    body: unmaskBody({ connection, url: target.url, body }, known, found, rules),
    outcome: outcome && { ...outcome, require: storedRule(outcome.require) },
    secret: unmaskSecret({ connection, url: target.url, secret }, known, faults),
    lookup: lookup && callOf('lookup', lookup),
    cancel: cancel && callOf('cancel', cancel),
  };
}

type SentRule = NonNullable<Extract<TargetInput, { type: 'http' }>['outcome']>['require'];

function storedRule(rule: SentRule): OutcomeRules['require'] {
  if (rule === null || 'contains' in rule) return rule;
  return { pointer: rule.pointer, json: JSON.stringify(rule.equals) };
}

/** A call of a target, and the connection of the target. */
type Placed<Call> = Call & Pick<HttpTarget, 'connection'>;

function unmask(
  { connection, url, method, headers }: Placed<HttpCall<string>>,
  stored: Placed<HttpCall> | null,
  path: string,
  faults: Fault[],
): HttpCall {
  if (!Object.values(headers).includes(MASK)) return { url, method, headers };
  const known = new Map(Object.entries(stored?.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]));
  const keptAt = keeper({ connection, url }, stored, faults);
  const unmasked = Object.entries(headers).map(([name, value]): [string, Credential] => {
    if (value !== MASK) return [name, value];
    return [name, keptAt(path + pointer([name]), known.get(name.toLowerCase())) ?? value];
  });
  return { url, method, headers: Object.fromEntries(unmasked) };
}

function unmaskBody(
  { connection, url, body }: Placed<{ url: string; body: SentBody }>,
  stored: HttpTarget | null,
  { faults, impossible }: Found,
  rules: FileRules,
): HttpTarget['body'] {
  if (typeof body === 'string') return body;
  const { secrets, ...text } = body;
  if (secrets === undefined || Object.keys(secrets).length === 0) return text;
  const keptAt = keeper({ connection, url }, stored, faults);
  const goesElsewhere = stored !== null && !isSamePlace({ connection, url }, stored);
  const before = typeof stored?.body === 'object' ? stored.body.secrets : undefined;
  const known = Object.entries(before ?? {}).map(([name, value]) => ({ name, value, goesElsewhere }));
  const unmasked = Object.entries(secrets).map(([name, value]): [string, Credential] => {
    const path = `/target/body/secrets${pointer([name])}`;
    const kept = known.find((one) => one.name === name);
    if (typeof value === 'object')
      return [name, resolveFile(value, { path, before: kept, stored: known, faults, impossible }, rules)];
    if (value !== MASK) return [name, value];
    return [name, keptAt(path, isSecretFile(kept?.value) ? undefined : kept?.value) ?? value];
  });
  return { ...text, secrets: Object.fromEntries(unmasked) };
}

type SentBody = Extract<TargetInput, { type: 'http' }>['body'];

/** `***` keeps the stored value: the only secret, all secrets, or in a list of two the one at the same position. */
function unmaskSecret(
  { connection, url, secret }: Placed<{ url: string; secret: string | string[] | null }>,
  stored: HttpTarget | null,
  faults: Fault[],
): HttpTarget['secret'] {
  const keptAt = keeper({ connection, url }, stored, faults);
  const known = stored?.secret ?? undefined;
  if (!Array.isArray(secret)) {
    return secret === MASK ? (keptAt('/target/secret', known) ?? secret) : secret;
  }
  const single = Array.isArray(known) ? undefined : known;
  const isAmbiguous = single !== undefined && secret.every((one) => one === MASK);
  return secret.map((one, index) => {
    if (one !== MASK) return one;
    const place = Array.isArray(known) ? known[index] : isAmbiguous && index > 0 ? undefined : single;
    return keptAt(`/target/secret/${index}`, place) ?? one;
  });
}

function isSamePlace(given: Placed<{ url: string }>, stored: Placed<{ url: string }>): boolean {
  return destinationOf(given.connection, given.url) === destinationOf(stored.connection, stored.url);
}

/** A stored value may be kept only if it still goes to the same origin or connection; otherwise that is a fault. */
function keeper(given: Placed<{ url: string }>, stored: Placed<{ url: string }> | null, faults: Fault[]) {
  const isThere = stored !== null && isSamePlace(given, stored);
  return <Value>(path: string, kept: Value | undefined): Value | undefined => {
    if (kept === undefined) {
      faults.push({ path, message: `is "${MASK}", but there is no stored value to keep` });
    } else if (!isThere) {
      const what = given.connection === stored?.connection ? "URL's origin" : 'connection';
      faults.push({ path, message: `must be given again, since the ${what} changes` });
    }
    return kept;
  };
}

/**
 * The target to which a merge patch is applied. A patch that names another type replaces the target, and keeps nothing
 * of the old one.
 */
export function patchableTarget(stored: ScheduleTarget, patch: unknown): object | null {
  const shown = answerTarget(stored);
  const type = isObject(patch) ? patch['type'] : undefined;
  if (type !== undefined && type !== stored.type) return {};
  if (shown?.type !== 'http') return shown;
  const { outcome, lookup, cancel } = shown;
  return {
    ...withoutRenamedHeaders(shown, patch),
    outcome: outcome && withoutReplacedRule(outcome, memberOf(memberOf(patch, 'outcome'), 'require')),
    lookup: lookup && withoutRenamedHeaders(lookup, memberOf(patch, 'lookup')),
    cancel: cancel && withoutRenamedHeaders(cancel, memberOf(patch, 'cancel')),
  };
}

/** A header that the patch names in another letter case is the same header. */
function withoutRenamedHeaders<T extends HttpCall<string>>(shown: T, patch: unknown): T {
  const patched = Object.keys(memberOf(patch, 'headers'));
  const exact = new Set(patched);
  const named = new Set(patched.map((name) => name.toLowerCase()));
  const kept = Object.entries(shown.headers).filter(([name]) => exact.has(name) || !named.has(name.toLowerCase()));
  return { ...shown, headers: Object.fromEntries(kept) };
}

/** What is required by its text replaces what is required by a pointer, and the other way round. */
function withoutReplacedRule(rules: AnsweredRules, required: Record<string, unknown>): AnsweredRules {
  const stays = Object.keys(required).every((name) => rules.require !== null && name in rules.require);
  return stays ? rules : { ...rules, require: null };
}

function memberOf(value: unknown, name: string): Record<string, unknown> {
  const member = isObject(value) ? value[name] : undefined;
  return isObject(member) ? member : {};
}

export interface Sealing extends FileRules {
  /** The uid of the schedule of the target, or of the definition of one-off runs. */
  uid: string;
}

/**
 * The target as it is stored: its secret values are encrypted. Values that cannot be encrypted without a key are added
 * to `impossible`.
 */
export function sealed<Given extends ScheduleTarget>(
  given: Given,
  { secrets: ring, uid }: Pick<Sealing, 'secrets' | 'uid'>,
  before: ScheduleTarget | null,
  impossible: Fault[],
): Given {
  const { target, unsealed } = sealTarget(given, { ring, uid, before });
  impossible.push(...unsealed.map(({ steps }) => ({ path: pointer(['target', ...steps]), message: NO_KEY })));
  return target;
}

/** Of a secret value that was sent where there is no key. */
export const NO_KEY =
  'cannot be stored: secrets are stored only encrypted, and no key is configured; set FIRELOCK_SECRET_KEYS (docs/secrets.md)';
