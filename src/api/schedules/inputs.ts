import type { Instant } from '../../core/instant.ts';
import { sameDefinition } from '../../core/time/definition-change.ts';
import type { ResultBound } from '../../core/schedules/expect.ts';
import type { Definition, Schedule, ScheduleTarget } from '../../core/schedules/schedule.ts';
import type { KeyRing } from '../../core/secrets/key-ring.ts';
import { resealTarget } from '../../core/schedules/target-secrets.ts';
import { MAX_PAYLOAD_BYTES, isObject } from '../http/json/json-body.ts';
import { mergeJsonText, mergePatch } from '../http/json/raw-json.ts';
import { type Fault, invalid } from '../http/problem.ts';
import { answerCron, answerDefinition } from './answers.ts';
import { type ScheduleInput, patchedInput } from './schemas.ts';
import { dayRuleFaults } from './day-schemas.ts';
import { kindsOf, TIMING_KINDS } from './timing-schemas.ts';
import { bodySizeFaults } from '../targets/body-and-outcome.ts';
import type { FileRules } from '../targets/secret-files.ts';
import { patchableTarget, unmaskTarget, type Sealing, sealed } from '../targets/inputs.ts';
import { checkValue } from '../http/validation.ts';
import { fireFaults } from './fire-faults.ts';

/**
 * A definition as sent. Secret values that were sent masked are filled in from the stored definition; all secret values
 * are encrypted.
 */
interface ResolvedInput {
  definition: Definition;
  /** As it was sent, also together with `enabled: true`, which removes it. */
  pauseUntil: Instant | null;
  faults: Fault[];
  /** Faults of a well-formed body, to be answered with 422. */
  impossible: Fault[];
}

/** `payload` is the source text that was sent; JSON's null is no payload. */
export function resolveInput(
  input: ScheduleInput,
  payload: string | undefined,
  current: Schedule | null,
  sealing: Sealing,
): ResolvedInput {
  const faults: Fault[] = [];
  const impossible: Fault[] = [];
  const before = current?.definition.target ?? null;
  const given = input.target === null ? NO_TARGET : unmaskTarget(input.target, before, { faults, impossible }, sealing);
  const target = sealed(given, sealing, before, impossible);
  const { id, status, late, error, nextFireAt, lastFireAt, pingKey, lockedBy, lockedAt, ...rest } = input;
  const { version, createdAt, updatedAt, ...sent } = rest;
  // A patch may leave out the expression that is stored, which was not read with it.
  faults.push(...dayRuleFaults({ ...sent }), ...bodySizeFaults(input.target ?? {}, payload));
  const { enabled, pauseReason, pauseUntil } = sent;
  return {
    faults,
    impossible,
    pauseUntil,
    definition: {
      ...sent,
      expect: sent.expect && { ...sent.expect, result: sent.expect.result?.map(storedBound) ?? null },
      // A caller sends back the answer of GET of a paused schedule to resume it.
      pauseReason: enabled ? null : pauseReason,
      pauseUntil: enabled ? null : pauseUntil,
      target,
      payload: payload === undefined || payload === 'null' ? null : payload,
    },
  };
}

const NO_TARGET: ScheduleTarget = { type: 'none' };

type SentBound = NonNullable<NonNullable<ScheduleInput['expect']>['result']>[number];

function storedBound({ pointer, min, max, ...sent }: SentBound): ResultBound {
  const json = 'equals' in sent ? JSON.stringify(sent.equals) : null;
  return { pointer, min: min ?? null, max: max ?? null, json };
}

/**
 * The stored schedule with a merge patch applied (RFC 7396), as if the caller had edited the answer of GET and sent it
 * back: headers that the patch leaves out count as sent masked. @throws Problem 400
 */
export function resolvePatch(
  patch: unknown,
  payload: string | undefined,
  current: Schedule,
  rules: FileRules,
): ResolvedInput {
  const { payload: stored } = current.definition;
  const merged = mergePatch(patchable(current, patch), withoutPayload(patch));
  const kept = keptUnread(patch, current.definition);
  const checked = checkValue(patchedInput, isObject(merged) ? { ...merged, ...kept.standIns } : merged);
  if ('faults' in checked) throw invalid(checked.faults);
  const newPayload = payload === undefined ? stored : mergeJsonText(stored, payload);
  if (newPayload !== null && Buffer.byteLength(newPayload) > MAX_PAYLOAD_BYTES) {
    throw invalid([{ path: '/payload', message: `must be at most ${MAX_PAYLOAD_BYTES} bytes of JSON` }]);
  }
  const sealing = { ...rules, uid: current.uid };
  return resolveInput({ ...checked.value, ...kept.stored }, newPayload ?? undefined, current, sealing);
}

/** A value that changes anyway is encrypted by the present key. */
export function encryptedAnew(definition: Definition, current: Schedule | null, secrets: KeyRing): Definition {
  if (!current || sameDefinition(current.definition, definition)) return definition;
  return { ...definition, target: resealTarget(secrets, current.uid, definition.target) };
}

/**
 * An expression or zone that an earlier version accepted and this one refuses does not keep a caller from changing
 * other fields: a caller can pause the schedule, or replace the expression.
 */
function keptUnread(patch: unknown, { cron, timezone }: Definition) {
  const named = isObject(patch) ? patch : {};
  const keepsCron = cron !== null && kindsOf(patch).length === 0 && !('cron' in named);
  const keepsZone = timezone !== null && !('timezone' in named);
  return {
    standIns: { ...(keepsCron ? { cron: '@daily' } : {}), ...(keepsZone ? { timezone: 'UTC' } : {}) },
    stored: { ...(keepsCron ? { cron: answerCron(cron) } : {}), ...(keepsZone ? { timezone } : {}) },
  };
}

function patchable(current: Schedule, patch: unknown) {
  const kinds = kindsOf(patch);
  const replaced = kinds.length === 0 ? [] : TIMING_KINDS.filter((kind) => !kinds.includes(kind));
  return {
    ...answerDefinition(current.definition),
    ...Object.fromEntries(replaced.map((kind) => [kind, null])),
    target: patchableTarget(current.definition.target, isObject(patch) ? patch['target'] : undefined),
  };
}

function withoutPayload(patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  return Object.fromEntries(Object.entries(patch).filter(([name]) => name !== 'payload'));
}

/**
 * Why a pause cannot end at the moment that the caller gives, to be answered with 422. None if that moment is stored
 * already: a caller may send back the answer of GET of a paused schedule, also to enable it.
 */
export function pauseFaults(
  { definition: { enabled }, pauseUntil }: ResolvedInput,
  { current, now }: { current: Schedule | null; now: Instant },
): Fault[] {
  if (pauseUntil === null || pauseUntil === current?.definition.pauseUntil) return [];
  const faults: Fault[] = [];
  const path = '/pauseUntil';
  if (enabled) faults.push({ path, message: 'must be null unless enabled is false' });
  if (pauseUntil <= now) faults.push({ path, message: 'must be in the future' });
  return faults;
}

/** The schedule that a write makes, unless it is impossible. */
export interface AcceptedWrite {
  definition: Definition;
  /** Faults to be answered with 422. */
  impossible: Fault[];
}

/** @throws Problem 400 */
export function accepted(
  resolved: ResolvedInput,
  context: Parameters<typeof fireFaults>[1],
  secrets: KeyRing,
): AcceptedWrite {
  const { definition, faults, impossible } = resolved;
  if (faults.length > 0) throw invalid(faults);
  return {
    definition: encryptedAnew(definition, context.current, secrets),
    impossible: [...impossible, ...fireFaults(definition, context), ...pauseFaults(resolved, context)],
  };
}
