import type { FirelockEvent } from '../core/events.ts';
import type { Logger } from './log/logger.ts';

export type EventOf<T extends FirelockEvent['type']> = Extract<FirelockEvent, { type: T }>;
/** What is counted of events. */
export type Handlers = { [T in FirelockEvent['type']]?: (event: EventOf<T>) => void };
/** What is logged of events. */
export type Lines = { [T in FirelockEvent['type']]?: (logger: Logger, event: EventOf<T>) => void };
