import type { Definition, HttpLookup, HttpTarget, Schedule } from '../core/schedule.ts';
import { LONGEST_PAYLOAD_BYTES, isObject, pointer } from './json-body.ts';
import { mergeJsonText, mergePatch } from './merge-patch.ts';
import { type Fault, invalid } from './problem.ts';
import { answerDefinition } from './schedule-answer.ts';
import { type ScheduleInput, scheduleInput } from './schemas/schedule.ts';
import { MASK } from './schemas/target.ts';
import { KINDS, kindsOf } from './schemas/timing.ts';
import { checkValue } from './validation.ts';

/** A definition as sent, its headers filled in from the stored one where they were sent masked. */
export interface Resolved {
  definition: Definition;
  faults: Fault[];
}

/** `payload` is the source text that was sent; JSON's null is no payload. */
export function resolveInput(
  input: ScheduleInput,
  payload: string | undefined,
  current: Schedule | null,
): Resolved {
  const faults: Fault[] = [];
  const target = unmaskTarget(input.target, current?.definition.target ?? null, faults);
  const { description, cron, everySeconds, at, after, timezone, enabled, startAt, endAt } = input;
  const { catchUp, catchUpLimit, graceSeconds, overlap, jitterSeconds } = input;
  const { retry, timeoutSeconds, delivery, priority, labels } = input;
  return {
    faults,
    definition: {
      description,
      cron,
      everySeconds,
      at,
      after,
      timezone,
      enabled,
      startAt,
      endAt,
      catchUp,
      catchUpLimit,
      graceSeconds,
      overlap,
      jitterSeconds,
      target,
      payload: payload === undefined || payload === 'null' ? null : payload,
      retry,
      timeoutSeconds,
      delivery,
      priority,
      labels,
    },
  };
}

/**
 * The stored schedule with a merge patch applied (RFC 7396), as if the answer of GET had been edited and sent back: what
 * the patch leaves out of the headers counts as sent masked.
 * @throws Problem 400
 */
export function resolvePatch(patch: unknown, payload: string | undefined, current: Schedule): Resolved {
  const { payload: stored } = current.definition;
  const merged = mergePatch(patchable(current, patch), withoutPayload(patch));
  const kept = keptUnread(patch, current.definition);
  const checked = checkValue(scheduleInput, isObject(merged) ? { ...merged, ...kept.standIns } : merged);
  if ('faults' in checked) throw invalid(checked.faults);
  const newPayload = payload === undefined ? stored : mergeJsonText(stored, payload);
  if (newPayload !== null && Buffer.byteLength(newPayload) > LONGEST_PAYLOAD_BYTES) {
    throw invalid([{ path: '/payload', message: `must be at most ${LONGEST_PAYLOAD_BYTES} bytes of JSON` }]);
  }
  return resolveInput({ ...checked.value, ...kept.stored }, newPayload ?? undefined, current);
}

/**
 * An expression, or a zone, that an earlier version took and this one does not, holds nobody up who changes something else:
 * the schedule can be paused, or given another one.
 */
function keptUnread(patch: unknown, { cron, timezone }: Definition) {
  const named = isObject(patch) ? patch : {};
  const keepsCron = cron !== null && kindsOf(patch).length === 0 && !('cron' in named);
  const keepsZone = timezone !== null && !('timezone' in named);
  return {
    standIns: { ...(keepsCron ? { cron: '@daily' } : {}), ...(keepsZone ? { timezone: 'UTC' } : {}) },
    stored: { ...(keepsCron ? { cron } : {}), ...(keepsZone ? { timezone } : {}) },
  };
}

function unmaskTarget(
  { type, lookup, ...target }: ScheduleInput['target'],
  stored: HttpTarget | null,
  faults: Fault[],
): HttpTarget {
  return {
    type,
    ...unmask(target, stored, '/target/headers', faults),
    lookup: lookup && unmask(lookup, stored?.lookup ?? null, '/target/lookup/headers', faults),
  };
}

function unmask(
  { url, method, headers }: HttpLookup,
  stored: HttpLookup | null,
  path: string,
  faults: Fault[],
): HttpLookup {
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

/** Templates stand in path and query only, so the origin can be told without filling them in. */
function originOf(url: string): string | null {
  return URL.canParse(url) ? new URL(url).origin : null;
}

function patchable(current: Schedule, patch: unknown) {
  const shown = answerDefinition(current.definition);
  const target = memberOf(patch, 'target');
  const { lookup } = shown.target;
  const kinds = kindsOf(patch);
  const replaced = kinds.length === 0 ? [] : KINDS.filter((kind) => !kinds.includes(kind));
  return {
    ...shown,
    ...Object.fromEntries(replaced.map((kind) => [kind, null])),
    target: {
      ...withoutRenamedHeaders(shown.target, target),
      lookup: lookup && withoutRenamedHeaders(lookup, memberOf(target, 'lookup')),
    },
  };
}

/** A header that the patch names in another letter case is the same header. */
function withoutRenamedHeaders<T extends HttpLookup>(shown: T, patch: unknown): T {
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

function withoutPayload(patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  return Object.fromEntries(Object.entries(patch).filter(([name]) => name !== 'payload'));
}
