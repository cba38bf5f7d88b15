/** Whatever runs beside others: when it starts and stops says the table of services (service-table.ts). */
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
