import type { FirelockEvent } from '../core/events.ts';

/** Carries core events from the flow to their listeners: metrics and log lines. Listeners are synchronous and cheap. */
export interface EventBus {
  emit(event: FirelockEvent): void;
  subscribe(listener: (event: FirelockEvent) => void): void;
}

export function createEventBus(): EventBus {
  const listeners: ((event: FirelockEvent) => void)[] = [];
  return {
    emit: (event) => {
      for (const listener of listeners) listener(event);
    },
    subscribe: (listener) => void listeners.push(listener),
  };
}
