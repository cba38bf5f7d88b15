import type { Instant } from '../../../core/instant.ts';
import type { Schedule } from '../../../core/schedules/schedule.ts';
import type { Fault } from '../../http/problem.ts';
import type { ResolvedInput } from '../inputs.ts';

/**
 * Why a pause cannot end at the moment that the caller gives, to be answered with 422. None if that moment is stored
 * already: a caller may send back the answer of GET of a paused schedule, also to enable it.
 */
export function pauseFaults(
  { definition: { enabled }, pauseUntil }: ResolvedInput,
  { current, now }: { current: Schedule | null; now: Instant },
): Fault[] {
  if (pauseUntil === null || pauseUntil === current?.definition.pauseUntil) return [];
  const faults: Fault[] = [];
  const path = '/pauseUntil';
  if (enabled) faults.push({ path, message: 'must be null unless enabled is false: only a pause ends' });
  if (pauseUntil <= now)
    faults.push({ path, message: 'must be in the future: then the pause ends by itself' });
  return faults;
}
