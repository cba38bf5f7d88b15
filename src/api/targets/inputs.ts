import type { HttpCall, Target } from '../../core/schedules/schedule.ts';
import { isObject, pointer } from '../http/json/json-body.ts';
import type { Fault } from '../http/problem.ts';
import { MASK } from './http-call-schemas.ts';
import type { TargetInput } from './schemas.ts';
import { answerTarget } from './answers.ts';

/** A target as sent, its headers filled in from the stored one where they were sent masked; what cannot be is added to `faults`. */
export function unmaskTarget(input: TargetInput, stored: Target | null, faults: Fault[]): Target {
  if (input.type === 'pull') return { type: input.type, queue: input.queue };
  const { type, lookup, cancel, ...target } = input;
  const known = stored?.type === 'http' ? stored : null;
  const callOf = (name: 'lookup' | 'cancel', call: HttpCall) =>
    unmask(call, known?.[name] ?? null, `/target/${name}/headers`, faults);
  return {
    type,
    ...unmask(target, known, '/target/headers', faults),
    lookup: lookup && callOf('lookup', lookup),
    cancel: cancel && callOf('cancel', cancel),
  };
}

function unmask(
  { url, method, headers }: HttpCall,
  stored: HttpCall | null,
  path: string,
  faults: Fault[],
): HttpCall {
  if (!Object.values(headers).includes(MASK)) return { url, method, headers };
  const known = new Map(
    Object.entries(stored?.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]),
  );
  const sameOrigin = stored !== null && originOf(stored.url) === originOf(url);
  const unmasked = Object.entries(headers).map(([name, value]) => {
    if (value !== MASK) return [name, value] as const;
    const kept = known.get(name.toLowerCase());
    if (kept === undefined || !sameOrigin) {
      const message =
        kept === undefined
          ? `is "${MASK}", and there is no stored value to keep`
          : "must be given again, since the URL's origin changes";
      faults.push({ path: path + pointer([name]), message });
    }
    return [name, kept ?? value] as const;
  });
  return { url, method, headers: Object.fromEntries(unmasked) };
}

/** Templates stand in path and query only, so the origin is known without filling them in. */
function originOf(url: string): string | null {
  return URL.canParse(url) ? new URL(url).origin : null;
}

/** What a merge patch of a target is applied to. One that names another type is about another target: nothing of this one stays. */
export function patchableTarget(stored: Target, patch: unknown): object {
  const shown = answerTarget(stored);
  const type = isObject(patch) ? patch['type'] : undefined;
  if (type !== undefined && type !== stored.type) return {};
  if (shown.type === 'pull') return shown;
  const { lookup, cancel } = shown;
  return {
    ...withoutRenamedHeaders(shown, patch),
    lookup: lookup && withoutRenamedHeaders(lookup, memberOf(patch, 'lookup')),
    cancel: cancel && withoutRenamedHeaders(cancel, memberOf(patch, 'cancel')),
  };
}

/** A header that the patch names in another letter case is the same header. */
function withoutRenamedHeaders<T extends HttpCall>(shown: T, patch: unknown): T {
  const patched = Object.keys(memberOf(patch, 'headers'));
  const exact = new Set(patched);
  const named = new Set(patched.map((name) => name.toLowerCase()));
  const kept = Object.entries(shown.headers).filter(
    ([name]) => exact.has(name) || !named.has(name.toLowerCase()),
  );
  return { ...shown, headers: Object.fromEntries(kept) };
}

function memberOf(value: unknown, name: string): Record<string, unknown> {
  const member = isObject(value) ? value[name] : undefined;
  return isObject(member) ? member : {};
}
