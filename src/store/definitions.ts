import type { Definition } from '../core/schedule.ts';

/** What a version's definition column holds: all but the payload, which is kept as the client's own text. */
export type StoredDefinition = Omit<Definition, 'payload'>;

/** A stored definition as this version knows it; what an older version did not write has the value of that time. */
export function readDefinition(stored: StoredDefinition, payload: string | null): Definition {
  const older: Partial<StoredDefinition> = stored;
  return {
    ...stored,
    delivery: older.delivery ?? 'atLeastOnce',
    target: { ...stored.target, lookup: (older.target as Partial<Definition['target']>).lookup ?? null },
    payload,
  };
}
