import { get } from '../../../api/http.ts';
import type { ListOccurrencesResponse, Occurrence } from '../../../../../clients/typescript/src/generated/types.gen.ts';
import { type Polled, usePoll } from '../../../state/poll.ts';
import { callPath } from '../../../state/schedule-paths.ts';

const PAGE = 500;
const MAX_PAGES = 4;

export interface Counted {
  states: Partial<Record<Occurrence['state'], number>>;
  /** There are more than were counted. */
  isCut: boolean;
}

/** How many occurrences of a period have which state, up to 2,000. Null: there is no such period. */
export function useCount(id: string, from: string, to: string): Polled<Counted | null> {
  return usePoll(
    `count ${id} ${from} ${to}`,
    (signal) => (isPeriod(from, to) ? count(id, { from, to }, signal) : Promise.resolve(null)),
    { everyMs: 30_000 },
  );
}

async function count(id: string, period: { from: string; to: string }, signal: AbortSignal): Promise<Counted> {
  const states: Counted['states'] = {};
  let cursor: string | null = null;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const query = { ...period, limit: PAGE, cursor };
    const answer: ListOccurrencesResponse = await get(callPath(id, '/occurrences'), query, signal);
    for (const { state } of answer.items) states[state] = (states[state] ?? 0) + 1;
    cursor = answer.nextCursor;
    if (cursor === null) return { states, isCut: false };
  }
  return { states, isCut: true };
}

function isPeriod(from: string, to: string): boolean {
  return from !== '' && to !== '' && Date.parse(from) < Date.parse(to);
}
