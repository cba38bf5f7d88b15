import type { FirelockEvent } from '../core/events.ts';
import type { Logger } from './log/logger.ts';

export type EventOf<T extends FirelockEvent['type']> = Extract<FirelockEvent, { type: T }>;
/** Which events are counted. */
export type Handlers = { [T in FirelockEvent['type']]?: (event: EventOf<T>) => void };
/** Which events are logged. */
export type Lines = { [T in FirelockEvent['type']]?: (logger: Logger, event: EventOf<T>) => void };
