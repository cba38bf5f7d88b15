import type { ListSchedulesResponse } from '../../../../clients/typescript/src/generated/types.gen.ts';
import type { Verb } from '../../parts/lists/bulk-words.ts';
import { type NO_PAUSE, pauseBody } from '../schedule/actions/pause-fields.tsx';

export type Row = ListSchedulesResponse['items'][number];
export type ChosenAction = 'pause' | 'resume' | 'label' | 'delete';

export const VERBS: Record<ChosenAction, Verb> = {
  pause: 'Pause',
  resume: 'Resume',
  label: 'Label',
  delete: 'Delete',
};

/** What is typed for all of them. */
export interface Typed {
  pause: typeof NO_PAUSE;
  /** As `key:value`; empty: none. */
  set: string;
  /** The key of a label; empty: none. */
  removed: string;
  /** How many they are, typed as one types the id of a single one. */
  count: string;
}

/** Paused ones keep their reason, as in `POST /schedules/bulk`. */
export function isSoAlready(action: ChosenAction, { enabled }: Pick<Row, 'enabled'>): boolean {
  return (action === 'pause' && !enabled) || (action === 'resume' && enabled);
}

/** Whether what is typed is enough to act on so many. */
export function isComplete(action: ChosenAction, { set, removed, count }: Typed, rows: number): boolean {
  if (action === 'delete') return count.trim() === String(rows);
  if (action !== 'label') return true;
  return (set === '' || set.indexOf(':') > 0) && set + removed !== '';
}

/** Of the call for each of them; undefined: it has none. */
export function bodyOf(action: ChosenAction, { pause, set, removed }: Typed): unknown {
  if (action === 'pause') return pauseBody(pause);
  if (action === 'resume') return { enabled: true };
  if (action === 'delete') return undefined;
  const colon = set.indexOf(':');
  const labels = new Map<string, string | null>();
  if (removed !== '') labels.set(removed, null);
  if (set !== '') labels.set(set.slice(0, colon), set.slice(colon + 1));
  return { labels: Object.fromEntries(labels) };
}
