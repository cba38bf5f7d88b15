import { askSigns, scheduleTotal } from '../../api/signs.ts';
import { usePoll } from '../../state/poll.ts';
import { scope } from '../../state/session.ts';
import { type Shown, countText } from './order.ts';

const EVERY_MS = 60_000;

/** How many schedules the page shows, and of how many; those that a filter finds nobody counts, nor those of a scope. */
export function Count(shown: Shown) {
  const { isWhole, isFiltered } = shown;
  const isAsked = !isWhole && !isFiltered && scope.value === null;
  const { data: total = null } = usePoll(
    `total ${isAsked}`,
    async (signal) => (isAsked ? scheduleTotal(await askSigns(signal)) : null),
    { everyMs: EVERY_MS },
  );
  return <p class="quiet">{countText(shown, total)}</p>;
}
