/** A part of the daemon that is started and stopped; the table of services says when (service-table.ts). */
export interface Service {
  readonly name: string;
  start(): Promise<void> | void;
  /** Idempotent; resolves when nothing of it runs any more. */
  stop(): Promise<void> | void;
}

/** What has worked since it was made, and has an end. */
export function onlyStopping(name: string, stop: () => Promise<unknown>): Service {
  return { name, start: () => undefined, stop: () => stop().then(() => undefined) };
}
