import { DEFAULT_TIMING, type Definition, type HttpTarget, type Timing } from '../core/schedule.ts';

/** What came with a later version than the first. */
type Later = Exclude<keyof Timing, 'cron' | 'timezone'> | 'overlap' | 'delivery';

/** What a version's definition column holds: all but the payload, which is kept as the client's own text. */
export type StoredDefinition = Omit<Definition, 'payload' | 'target' | Later> &
  Partial<Pick<Definition, Later>> & {
    target: Omit<HttpTarget, 'lookup'> & Partial<Pick<HttpTarget, 'lookup'>>;
  };

/** A stored definition as this version knows it; what an older version did not write has the value of that time. */
export function readDefinition(stored: StoredDefinition, payload: string | null): Definition {
  return {
    ...DEFAULT_TIMING,
    everySeconds: null,
    at: null,
    after: null,
    overlap: 'allow',
    delivery: 'atLeastOnce',
    ...stored,
    target: { lookup: null, ...stored.target },
    payload,
  };
}

/** When a schedule fires, as its row holds it for the planner: what is not said has its default. */
export function timingText(timing: Pick<Timing, 'cron' | 'timezone'> & Partial<Timing>): string {
  const said = TIMING_FIELDS.filter((field) => {
    const value = timing[field];
    return value !== undefined && value !== UNSAID[field];
  });
  return JSON.stringify(timing, [...said, 'scheduleId', 'on']);
}

/** @throws Error where the text is none of ours */
export function readTiming(text: string): Timing {
  return { ...UNSAID, ...(JSON.parse(text) as Partial<Timing>) };
}

const UNSAID: Timing = { ...DEFAULT_TIMING, cron: null, everySeconds: null, at: null, after: null };
const TIMING_FIELDS = Object.keys(UNSAID) as (keyof Timing)[];

/** Whether a stored definition says what it takes to hand a run off; only a foreign hand can store one that does not. */
export function canBeHandedOff(stored: unknown): boolean {
  const definition = fieldsOf(stored);
  const retry = fieldsOf(definition['retry']);
  const numbers = [
    definition['timeoutSeconds'],
    retry['maxAttempts'],
    retry['minBackoffSeconds'],
    retry['maxBackoffSeconds'],
  ];
  return (
    typeof fieldsOf(definition['target'])['type'] === 'string' &&
    numbers.every((value) => typeof value === 'number')
  );
}

function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
