/** What is wrong with an expression, in words for its author. */
export class CronError extends Error {
  override readonly name = 'CronError';
}
