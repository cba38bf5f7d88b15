import { JsonText, faultOfJson, formatJson, stringifyJson, textOf } from '../../api/json.ts';
import type {
  AfterInput,
  Schedule,
  VersionedSchedule,
} from '../../../../clients/typescript/src/generated/types.gen.ts';
import type { Fault } from '../../parts/endpoint/endpoint-draft.ts';
import { EMPTY_HTTP, type HttpDraft, httpDraftOf, httpFaults, httpTargetOf } from '../../parts/endpoint/http-draft.ts';
import { type Pair, twice, typedPairs } from '../../parts/forms/pair.ts';
import { type DayDraft, EMPTY_DAYS, dayDraftOf, daysOf } from './day-draft.ts';
import { numberOf } from './typed.ts';

/** A definition, as the daemon answers one. */
export type Stored = Schedule | VersionedSchedule;

const KINDS = ['cron', 'everySeconds', 'at', 'after'] as const;
export type Kind = (typeof KINDS)[number];

/** What is typed so far. Numbers are texts, so that the daemon says what is wrong with them. */
export interface Draft extends HttpDraft, DayDraft {
  id: string;
  description: string;
  kind: Kind;
  cron: readonly string[];
  everySeconds: string;
  /** ISO 8601, or empty; as `startAt` and `endAt`. */
  at: string;
  afterId: string;
  afterOn: readonly string[];
  timezone: string;
  startAt: string;
  endAt: string;
  /** `none`: it only observes, and the form keeps that. */
  targetType: 'http' | 'pull' | 'none';
  queue: string;
  payload: string;
  labels: readonly Pair[];
  /** By the name of the field, or `retry/NAME` and `expect/NAME`. */
  policies: Readonly<Record<string, string>>;
}

/** Fields of `policies` that are texts; the others are numbers. */
const TEXTS = new Set(['catchUp', 'overlap', 'completion', 'delivery', 'priority', 'limit']);
const POLICIES =
  'catchUp catchUpLimit graceSeconds overlap jitterSeconds timeoutSeconds completion completionTimeoutSeconds delivery ' +
  'expiresAfterSeconds priority limit pauseAfterFailures successWithinSeconds retry/maxAttempts retry/minBackoffSeconds retry/maxBackoffSeconds ' +
  'expect/startWithinSeconds expect/finishWithinSeconds expect/atLeastSeconds expect/result';
const READ_ONLY = new Set(
  'status late error nextFireAt lastFireAt pingKey lockedBy lockedAt version createdAt updatedAt'.split(' '),
);

export const EMPTY: Draft = {
  ...{ id: '', description: '', kind: 'cron', cron: [''], everySeconds: '', at: '', afterId: '' },
  ...{ afterOn: ['succeeded'], timezone: '', startAt: '', endAt: '' },
  ...EMPTY_DAYS,
  ...EMPTY_HTTP,
  ...{ targetType: 'http', queue: '' },
  ...{ payload: '', labels: [], policies: {} },
};

export function draftOf(stored: Stored): Draft {
  const { cron, everySeconds, at, after, target } = stored;
  const kind = KINDS.find((one) => stored[one] !== null) ?? 'cron';
  return {
    id: stored.id,
    description: stored.description ?? '',
    kind,
    cron: [cron ?? ''].flat(),
    everySeconds: everySeconds === null ? '' : String(everySeconds),
    at: at ?? '',
    afterId: after?.scheduleId ?? '',
    afterOn: after?.on ?? EMPTY.afterOn,
    timezone: stored.timezone ?? '',
    startAt: stored.startAt ?? '',
    endAt: stored.endAt ?? '',
    ...dayDraftOf(stored),
    targetType: target?.type ?? 'none',
    ...(target?.type === 'http' ? httpDraftOf(target) : EMPTY_HTTP),
    queue: target?.type === 'pull' ? target.queue : '',
    payload: textOf(stored.payload) === 'null' ? '' : formatJson(textOf(stored.payload)),
    labels: Object.entries(stored.labels),
    policies: policiesOf(stored),
  };
}

function policiesOf(stored: Stored): Draft['policies'] {
  const text = (name: string) => {
    let value: unknown = stored;
    for (const key of name.split('/')) value = (value as Record<string, unknown> | null)?.[key] ?? null;
    if (value === null) return '';
    return typeof value === 'string' ? value : stringifyJson(value);
  };
  return Object.fromEntries(POLICIES.split(' ').map((name) => [name, text(name)]));
}

/**
 * What to send. `base` is what the draft was made of: what the form has no field for stays as it is there, and so does the
 * text of a payload that was not touched.
 */
export function bodyOf(draft: Draft, base: Stored | null): Record<string, unknown> {
  const { kind, id, policies } = draft;
  const kept = Object.entries(base ?? {}).filter(([name]) => !READ_ONLY.has(name));
  const others = Object.entries(policies).filter(([name]) => !name.includes('/'));
  return {
    ...Object.fromEntries(kept),
    id,
    description: draft.description || null,
    // None: a heartbeat.
    cron: kind === 'cron' && draft.cron.length > 0 ? oneOrAll(draft.cron) : undefined,
    everySeconds: kind === 'everySeconds' ? (numberOf(draft.everySeconds) ?? '') : undefined,
    at: kind === 'at' ? draft.at : undefined,
    after: kind === 'after' ? afterOf(draft) : undefined,
    timezone: draft.timezone || null,
    startAt: draft.startAt || null,
    endAt: draft.endAt || null,
    ...daysOf(draft, kind),
    target: targetOf(draft, base),
    payload: payloadOf(draft, base),
    labels: Object.fromEntries(typedPairs(draft.labels)),
    ...Object.fromEntries(others.map(([name, text]) => [name, policyOf(name, text)])),
    retry: numbersIn(policies, 'retry'),
    expect: expectOf(policies),
  };
}

function oneOrAll(expressions: readonly string[]) {
  return expressions.length === 1 ? expressions[0] : expressions;
}

/** Null: no bound was typed. */
function expectOf(policies: Draft['policies']): Record<string, unknown> | null {
  const typed = Object.entries(numbersIn(policies, 'expect'));
  if (typed.every(([, bound]) => bound === undefined)) return null;
  return Object.fromEntries(typed.map(([name, bound]) => [name, bound ?? null]));
}

function numbersIn(policies: Draft['policies'], group: string): Record<string, unknown> {
  const named = Object.entries(policies).filter(([name]) => name.startsWith(`${group}/`));
  return Object.fromEntries(
    named.map(([name, text]) => [
      name.slice(group.length + 1),
      name.endsWith('/result') ? jsonOf(text) : numberOf(text),
    ]),
  );
}

/** What is no JSON goes as it is, so that the daemon says so. */
function jsonOf(text: string): unknown {
  if (text.trim() === '') return undefined;
  return faultOfJson(text) === null ? new JsonText(text.trim()) : text;
}

/** Empty: the default; what is no number goes as it is, so that the daemon says so. */
function policyOf(name: string, text: string): unknown {
  if (text.trim() === '') return NULLABLE.has(name) ? null : undefined;
  return TEXTS.has(name) ? text : numberOf(text);
}

const NULLABLE = new Set(['limit', 'expiresAfterSeconds', 'pauseAfterFailures', 'successWithinSeconds']);

function afterOf({ afterId, afterOn }: Draft): AfterInput {
  return { scheduleId: afterId, on: afterOn as NonNullable<AfterInput['on']> };
}

function targetOf(draft: Draft, base: Stored | null): unknown {
  const { targetType: type, queue } = draft;
  if (type === 'none') return null;
  if (type === 'pull') return { type, queue };
  return httpTargetOf(draft, base?.target?.type === 'http' ? base.target : null);
}

/** As it was typed, or as it was stored. */
export function payloadOf({ payload }: Draft, base: Stored | null): JsonText | null {
  if (payload.trim() === '') return null;
  const stored = base === null ? null : textOf(base.payload);
  return new JsonText(stored !== null && formatJson(stored) === payload ? stored : payload);
}

/** What cannot be sent at all, and so the daemon cannot say. */
export function faultsOf(draft: Draft): Fault[] {
  const { payload, labels, targetType } = draft;
  const json = payload.trim() === '' ? null : faultOfJson(payload);
  return [
    ...(json === null ? [] : [{ path: '/payload', message: json }]),
    ...twice(labels, '/labels'),
    ...(targetType === 'http' ? httpFaults(draft) : []),
  ];
}

/** Mine, where I have changed it; elsewhere what somebody else has made of it. */
export function rebase(mine: Draft, base: Draft, theirs: Draft): Draft {
  const changed = Object.entries(mine).filter(
    ([name, value]) => stringifyJson(value) !== stringifyJson(base[name as keyof Draft]),
  );
  const policies = Object.entries(mine.policies).filter(([name, value]) => value !== base.policies[name]);
  return {
    ...theirs,
    ...Object.fromEntries(changed),
    policies: { ...theirs.policies, ...Object.fromEntries(policies) },
  };
}
