/** Whatever runs beside others: started in order by daemon.ts, stopped in the reverse order. */
export interface Service {
  readonly name: string;
  start(): Promise<void> | void;
  /** Idempotent; resolves when nothing of it runs any more. */
  stop(): Promise<void> | void;
}
