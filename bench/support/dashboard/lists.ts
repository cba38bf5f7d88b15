import { callApi } from '../../../test/support/calls.ts';
import { median } from '../measures/statistics.ts';

export interface ListedPage {
  what: string;
  medianMs: number;
  worstMs: number;
}

const CALLS = 15;
const PAGES = 5;
const FILTERS = [
  '',
  '&status=active',
  '&status=paused',
  '&label=kind:daily',
  '&label=team:team-7',
  '&q=customer',
];

/** The list of schedules with their last runs, warm: the first page, those that follow, and with filters. */
export async function askRecentRuns(daemonUrl: string): Promise<ListedPage[]> {
  const found: ListedPage[] = [];
  for (const filter of FILTERS) {
    const query = `schedules?recent=20${filter}`;
    let cursor: string | null = '';
    for (let page = 1; page <= PAGES && cursor !== null; page += 1) {
      const path = `${query}${cursor === '' ? '' : `&cursor=${cursor}`}`;
      const asked = await askSomeTimes(`${daemonUrl}/api/v1/${path}`);
      found.push({ what: `${query}, page ${page}`, ...asked.taken });
      cursor = asked.nextCursor;
    }
  }
  return found;
}

async function askSomeTimes(url: string) {
  const all: number[] = [];
  let answer: unknown;
  for (let call = 0; call <= CALLS; call += 1) {
    const startedAt = performance.now();
    answer = await callApi(url);
    if (call > 0) all.push(performance.now() - startedAt);
  }
  const { nextCursor } = answer as { nextCursor: string | null };
  return { taken: { medianMs: median(all), worstMs: Math.max(...all) }, nextCursor };
}
