import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { get } from '../api/http.ts';
import type { Schedule } from '../../../clients/typescript/src/generated/types.gen.ts';
import { zoneChoice } from './zone.ts';
import { callPath } from './schedule-paths.ts';

const zones = signal<ReadonlyMap<string, string | null>>(new Map());

/** A list may name more schedules than are worth a question each: times of the others are said in UTC. */
const MAX_ASKED = 20;

/**
 * Zones of the schedules that a list of runs names: a run does not say its schedule's zone. Each is asked for once, one
 * after the other, and none unless times are to be shown in them.
 */
export function useScheduleZones(ids: readonly (string | null)[]): ReadonlyMap<string, string | null> {
  const known = zones.value;
  const wanted = [...new Set(ids)].filter((id) => id !== null).slice(0, MAX_ASKED);
  const missing = zoneChoice.value === 'schedule' ? wanted.filter((id) => !known.has(id)) : [];
  useEffect(() => {
    const asking = new AbortController();
    void learn(missing, asking.signal);
    return () => {
      asking.abort();
    };
  }, [missing.join('\n')]);
  return known;
}

async function learn(ids: readonly string[], signal: AbortSignal): Promise<void> {
  const learned = new Map<string, string | null>();
  for (const id of ids) {
    // A schedule may be gone, and its runs still there.
    const asked = get<Schedule>(callPath(id), {}, signal).catch(() => null);
    learned.set(id, (await asked)?.timezone ?? null);
    if (signal.aborted) return;
  }
  if (learned.size > 0) zones.value = new Map([...zones.value, ...learned]);
}
