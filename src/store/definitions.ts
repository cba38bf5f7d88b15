import type { Definition, HttpTarget } from '../core/schedule.ts';

/**
 * What a version's definition column holds: all but the payload, which is kept as the client's own text. Optional is what
 * came later than the first version.
 */
export type StoredDefinition = Omit<Definition, 'payload' | 'delivery' | 'target'> & {
  delivery?: Definition['delivery'];
  target: Omit<HttpTarget, 'lookup'> & Partial<Pick<HttpTarget, 'lookup'>>;
};

/** A stored definition as this version knows it; what an older version did not write has the value of that time. */
export function readDefinition(stored: StoredDefinition, payload: string | null): Definition {
  return {
    delivery: 'atLeastOnce',
    ...stored,
    target: { lookup: null, ...stored.target },
    payload,
  };
}

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
