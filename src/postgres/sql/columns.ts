import { customType } from 'drizzle-orm/pg-core';
import type { Instant } from '../../core/instant.ts';

/** `timestamptz(3)` as milliseconds: values that are compared for equality (fire-locks, keys) survive reading and writing. */
export const instantColumn = customType<{ data: Instant; driverData: string }>({
  dataType: () => 'timestamp (3) with time zone',
  toDriver: (at) => new Date(at).toISOString(),
  fromDriver: (text) => Date.parse(text),
});
