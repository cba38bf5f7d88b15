import type { Instant } from '../instant.ts';
import type { Alert } from './alert.ts';

export const MESSAGE_EVENTS = ['opened', 'recovered', 'reminder', 'test'] as const;
export type MessageEvent = (typeof MESSAGE_EVENTS)[number];

/** What a notifier is told: the same for every channel, which makes its own text of it. */
export interface Message {
  /** The id of the notifier. */
  notifier: string;
  event: MessageEvent;
  at: Instant;
  /** At most `MAX_TOLD`, in the order in which they opened. */
  alerts: readonly ToldAlert[];
  /** How many more it is about. */
  more: number;
  /** The notifier that could not deliver it, and whose fallback this one is; null: it is told for the first time. */
  fallbackFor: string | null;
}

export interface ToldAlert extends Omit<Alert, 'scheduleUid'> {
  labels: Readonly<Record<string, string>>;
  /** The page of the dashboard that says more; null: FIRELOCK_PUBLIC_URL is not set. */
  url: string | null;
}

/** Episodes that one message names. */
export const MAX_TOLD = 20;
/** What opens or heals within this time of the first is told in one message. */
export const GATHER_SECONDS = 10;
