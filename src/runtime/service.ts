/** A part of the daemon that is started and stopped; the table of services says when (service-table.ts). */
export interface Service {
  readonly name: string;
  start(): Promise<void> | void;
  /** Idempotent; resolves when all of it has stopped. */
  stop(): Promise<void> | void;
}

/** A service that works from its creation on, and only stops. */
export function onlyStopping(name: string, stop: () => Promise<unknown>): Service {
  return { name, start: () => undefined, stop: () => stop().then(() => undefined) };
}
