/** A statement costs as much as twenty of its rows; a run that ends alone does not wait. */
export const MIN_MS = 15;
/**
 * When many attempts end, many more will end soon. While they do, the processors are for what is still to be sent: nothing waits for
 * the end of a plain success to be written.
 */
const MIN_MS_IF_MANY = 250;
/** When many end and something waited for their ends: a place of a limit, schedules and runs that follow, the next fire of a schedule. */
const MIN_MS_IF_AWAITED = 50;
const MANY = 20;

/** How many ms lie at least between a pass that wrote so many plain successes and the next one, from start to start. */
export function pauseAfter(plain: { count: number; wereAwaited: boolean }): number {
  if (plain.count < MANY) return MIN_MS;
  return plain.wereAwaited ? MIN_MS_IF_AWAITED : MIN_MS_IF_MANY;
}
