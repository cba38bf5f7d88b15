import type { Instant } from '../../../core/instant.ts';
import type { Schedule } from '../../../core/schedules/schedule.ts';
import type { Fault } from '../../http/problem.ts';
import type { ResolvedInput } from '../inputs.ts';

/**
 * Why a pause cannot end when the caller says, to be answered with 422. Nothing where that is the moment already stored: what GET
 * answered of a paused schedule is sent back, be it to enable it.
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
