import type { FirelockEvent } from '../core/events.ts';
import type { Logger } from './log/logger.ts';

export type EventOf<T extends FirelockEvent['type']> = Extract<FirelockEvent, { type: T }>;
/** Which events are counted. */
export type Handlers = { [T in FirelockEvent['type']]?: (event: EventOf<T>) => void };
/** Which events are logged. */
export type Lines = { [T in FirelockEvent['type']]?: (logger: Logger, event: EventOf<T>) => void };

/** A line that says all that its event does. */
const lineAt =
  (level: 'debug' | 'info' | 'warn' | 'error') =>
  (text: string) =>
  (logger: Logger, { type: _, ...fields }: FirelockEvent): void =>
    logger[level](fields, text);

export const line = {
  debug: lineAt('debug'),
  info: lineAt('info'),
  warn: lineAt('warn'),
  error: lineAt('error'),
};
