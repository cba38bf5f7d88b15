/** What is wrong with an expression, in words for whoever wrote it. */
export class CronError extends Error {
  override readonly name = 'CronError';
}
