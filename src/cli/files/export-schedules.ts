import { isDeepStrictEqual } from 'node:util';
import type { Instant } from '../../core/instant.ts';
import { RawJson } from '../../api/http/json/raw-json.ts';
import { scheduleInput } from '../../api/schedules/schemas.ts';
import { followedBy } from '../../schedules-file/apply/stand-ins.ts';
import { SET_LABEL } from '../../schedules-file/schedules-file.ts';

/** A schedule as the API answers it, with its payload as the API wrote it. */
export interface Answered {
  fields: Readonly<Record<string, unknown>>;
  payload: string | null;
}

export interface Exported {
  fields: Record<string, unknown>;
  /** Null, or why a new installation would refuse the schedule. */
  isOver: string | null;
}

const READ_ONLY = 'status late error nextFireAt lastFireAt pingKey lockedBy lockedAt version createdAt updatedAt'.split(
  ' ',
);
const DEFAULTS: Readonly<Record<string, unknown>> = {
  ...scheduleInput.parse({ everySeconds: 60, target: { type: 'pull', queue: 'q' } }),
  // Exactly one of the four is required.
  everySeconds: null,
};

/** The fields that a client may set, without those that have their default. */
export function exported({ fields, payload }: Answered, now: Instant, set: string | null): Exported {
  const kept = Object.entries(fields).flatMap(([name, value]): [string, unknown][] => {
    if (READ_ONLY.includes(name) || name === 'payload' || value === null || value === undefined) return [];
    if (['target', 'exclude', 'expect'].includes(name)) return [[name, withoutNothing(value)]];
    if (name === 'labels') return labelsOf(value as Record<string, string>, set);
    return isDeepStrictEqual(value, DEFAULTS[name]) ? [] : [[name, value]];
  });
  const definition = Object.fromEntries(kept);
  if (payload !== null && payload !== 'null') definition['payload'] = new RawJson(onOneLine(payload));
  return { fields: definition, isOver: whyOver(fields, now) };
}

/**
 * Schedules that follow others come after them. `putOff` keeps a schedule that must wait,
 * and answers whether it must; `rest` answers those that were kept.
 */
export function createOrder() {
  const waiting: { id: string; parent: string; one: Exported }[] = [];
  return {
    putOff: (one: Exported): boolean => {
      const parent = followedBy(one.fields);
      if (parent === null) return false;
      waiting.push({ id: String(one.fields['id']), parent, one });
      return true;
    },
    /** Parents first. If a parent cannot be restored, neither can its followers. */
    rest: (isOver: (id: string) => boolean): Exported[] => {
      const byParent = Map.groupBy(waiting, ({ parent }) => parent);
      const ids = new Set(waiting.map(({ id }) => id));
      const sorted: Exported[] = [];
      const next = waiting
        .filter(({ parent }) => !ids.has(parent))
        .map((follower) => ({ follower, over: isOver(follower.parent) }));
      for (let entry = next.shift(); entry; entry = next.shift()) {
        const { follower, over } = entry;
        const { one, id, parent } = follower;
        const isOverNow = one.isOver ?? (over ? `it follows ${parent}` : null);
        sorted.push({ ...one, isOver: isOverNow });
        next.push(...(byParent.get(id) ?? []).map((below) => ({ follower: below, over: isOverNow !== null })));
      }
      return sorted;
    },
  };
}

/** Line breaks in a payload are white space between its parts; within a member of YAML they would have to be indented. */
function onOneLine(payload: string): string {
  return /[\r\n]/.test(payload) ? payload.replace(/("(?:[^"\\]|\\.)*")|\s+/g, '$1') : payload;
}

function labelsOf(labels: Readonly<Record<string, string>>, set: string | null): [string, unknown][] {
  const kept = Object.entries(labels).filter(([name]) => set === null || name !== SET_LABEL);
  return kept.length === 0 ? [] : [['labels', Object.fromEntries(kept)]];
}

/** Members that are null or empty say nothing. */
export function withoutNothing(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const members = Object.entries(value).filter(
    ([, member]) => member !== null && !(typeof member === 'object' && Object.keys(member as object).length === 0),
  );
  return Object.fromEntries(members.map(([name, member]) => [name, withoutNothing(member)]));
}

function whyOver({ status, at, endAt, graceSeconds }: Answered['fields'], now: Instant): string | null {
  if (status === 'ended') return 'it has ended';
  if (typeof at === 'string' && Date.parse(at) < now - Number(graceSeconds) * 1000) return 'its moment is over';
  return typeof endAt === 'string' && Date.parse(endAt) <= now ? 'its end is over' : null;
}
