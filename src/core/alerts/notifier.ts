import type { Instant } from '../instant.ts';
import type { OneOffHandoff } from '../runs/one-off-run.ts';
import {
  type HandoffTarget,
  DEFAULT_COMPLETION_TIMEOUT_SECONDS,
  DEFAULT_TIMEOUT_SECONDS,
} from '../schedules/schedule.ts';
import type { AlertKind } from './alert.ts';
import type { ChannelType } from './texts/channels.ts';
import { newRun } from '../runs/new-run.ts';
import type { RunRecord } from '../runs/run-record.ts';

/** Which schedules a notifier speaks of. Each list that is not empty must have one that fits. */
export interface NotifierFilter {
  /** Ids, and beginnings of ids with a `*` behind. */
  ids: readonly string[];
  /** `key:value`: the schedule has all of these labels. */
  label: readonly string[];
}

/** Who is told what. What its messages are handed to stands in schedule_versions, under its uid and version. */
export interface Notifier {
  /** Another one where it is deleted and created again: secret values are bound to it. */
  uid: string;
  id: string;
  description: string | null;
  enabled: boolean;
  on: readonly AlertKind[];
  filter: NotifierFilter;
  channel: ChannelType;
  /** Host and port of its messages, or `mail`; absent before it is stored. */
  destination?: string;
  /** While an episode stays open, it is told of it again after so many seconds; null: never. */
  remindSeconds: number | null;
  /** firelock tells it of `failed` when so many runs in a row did not succeed. */
  afterFailures: number;
  /** The notifier that gets its messages which could not be delivered; null: none does. */
  fallback: string | null;
  version: number;
  updatedAt: Instant;
}

/** How long after it was recorded a message is tried: a night in which the other side is down. */
export const MESSAGE_TRIED_MS = 24 * 3_600_000;
/** A message that a try does not deliver so long after it was recorded goes to the fallback, and is still retried. */
export const TO_FALLBACK_MS = 3_600_000;
/** Time bounds the attempts, not their number. */
const RETRY = { maxAttempts: 1_000, minBackoffSeconds: 10, maxBackoffSeconds: 900 } as const;

/** How its messages are handed off. */
export function handoffOf(target: HandoffTarget): OneOffHandoff {
  return {
    target,
    retry: RETRY,
    timeoutSeconds: DEFAULT_TIMEOUT_SECONDS,
    delivery: 'atLeastOnce',
    completion: 'response',
    completionTimeoutSeconds: DEFAULT_COMPLETION_TIMEOUT_SECONDS,
  };
}

/** Messages to one destination share slots in this lane, which is for no other runs: a receiver that hangs holds up no other. */
export function laneOfMessages(destination: string): string {
  return `${LANES}${destination}`;
}

/** Slack takes blocks of plain text; what only has the form of its messages may not. */
export function isSlackItself({ channel, destination = '' }: Pick<Notifier, 'channel' | 'destination'>): boolean {
  return channel === 'slack' && /^hooks\.slack(?:-gov)?\.com(?::443)?$/.test(destination);
}

const LANES = 'notify ';

/** An episode that broke so often in a row, and had done so `before`: 0, it opens. */
interface Broken {
  kind: AlertKind;
  before: number;
  failures: number;
}

/** Whether the notifier is to be told now: `afterFailures` may ask for more of them first. */
export function isTimeToTell(
  { afterFailures }: Pick<Notifier, 'afterFailures'>,
  { kind, before, failures }: Broken,
): boolean {
  return kind === 'failed' ? before < afterFailures && afterFailures <= failures : before === 0;
}

/** Whether its kinds and its filter cover such an episode of that schedule. */
export function covers(
  { on, filter: { ids, label } }: Pick<Notifier, 'on' | 'filter'>,
  kind: AlertKind,
  schedule: { id: string; labels: Readonly<Record<string, string>> },
): boolean {
  return (
    on.includes(kind) &&
    (ids.length === 0 || ids.some((id) => fits(id, schedule.id))) &&
    label.every((one) => {
      const [key = '', ...value] = one.split(':');
      return schedule.labels[key] === value.join(':');
    })
  );
}

function fits(pattern: string, id: string): boolean {
  return pattern.endsWith('*') ? id.startsWith(pattern.slice(0, -1)) : id === pattern;
}

type GivenMessage = Pick<RunRecord, 'id' | 'status' | 'dueAt' | 'priority'> & Partial<RunRecord>;

/** The run of a message: it is handed to what the notifier's version says, and belongs to no schedule. */
export function messageRun(notifier: Notifier, given: GivenMessage, now: Instant): RunRecord {
  const { uid, id } = notifier;
  const ofNotifier = { scheduleUid: uid, scheduleId: '', notifierId: id, ...handedTo(notifier) };
  const run = { ...ofNotifier, scheduledFor: now, trigger: 'notify' } as const;
  return newRun({ ...run, ...given }, now);
}

/** Where the run of a message goes, by the notifier's present version. */
export function handedTo({ version, destination = '' }: Notifier): Pick<RunRecord, 'scheduleVersion' | 'lane'> {
  return { scheduleVersion: version, lane: laneOfMessages(destination) };
}
