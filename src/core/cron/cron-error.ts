/** An expression has faults; the message is for its author. */
export class CronError extends Error {
  override readonly name = 'CronError';
}
