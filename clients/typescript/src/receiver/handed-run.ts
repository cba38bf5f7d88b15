import type { Dependency, Run } from '../generated/types.gen.ts';
import { JsonText, parseJson } from '../json-text.ts';

/** A run as firelock hands it over. */
export interface HandedRun {
  /** The same in each attempt: the key under which work is remembered. */
  runId: string;
  runName: string | null;
  scheduleId: string | null;
  scheduledFor: string;
  trigger: Run['trigger'];
  /** Higher in each attempt. */
  attempt: number;
  /** Set where an instance died with the run: an earlier attempt may have arrived. */
  recovery: { recoveries: number; recoveredAt: string } | null;
  /** How the runs ended that this one waited for. */
  dependencies: Dependency[];
  /** `payload.value()` is what it says; `payload.text` keeps every digit. */
  payload: JsonText;
}

/** Null where firelock has not written it. */
export function readHandedRun(text: string): HandedRun | null {
  try {
    const fields = parseJson(text) as Omit<HandedRun, 'dependencies'> & Partial<HandedRun>;
    const isOne =
      typeof fields.runId === 'string' &&
      Number.isSafeInteger(fields.attempt) &&
      fields.attempt > 0 &&
      fields.payload instanceof JsonText;
    return isOne ? { ...fields, dependencies: fields.dependencies ?? [] } : null;
  } catch {
    return null;
  }
}
