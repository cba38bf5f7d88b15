import type { ListSchedulesResponse } from '../../../clients/typescript/src/generated/types.gen.ts';
import { type Query, get } from './http.ts';

/** So many schedules are looked at in one call, which so takes a moment however few of them match. */
const AT_ONCE = 5_000;

interface FoundSchedules extends ListSchedulesResponse {
  /** It took several calls. */
  isSlow: boolean;
}

/** A page of the schedules that match, found part by part. */
export async function findSchedules(query: Query & { limit: number }, signal: AbortSignal): Promise<FoundSchedules> {
  const items: ListSchedulesResponse['items'] = [];
  // What else is filtered by has an index.
  const isSearch = [query['q'], query['label']].some((value) => value !== undefined && String(value) !== '');
  let calls = 0;
  let cursor = query['cursor'];
  do {
    const limit = query.limit - items.length;
    const asked = { ...query, cursor, limit, ...(isSearch && { maxSchedules: AT_ONCE }) };
    const page = await get<ListSchedulesResponse>('/schedules', asked, signal);
    items.push(...page.items);
    cursor = page.nextCursor;
    calls += 1;
  } while (cursor !== null && items.length < query.limit);
  return { items, nextCursor: cursor, isSlow: calls > 1 };
}
