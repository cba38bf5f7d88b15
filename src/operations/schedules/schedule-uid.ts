import { randomBytes } from 'node:crypto';
import type { Instant } from '../../core/instant.ts';
import { uuidV7 } from '../../core/uuid-v7.ts';

let made = 0;

/**
 * The uid of a new schedule: UUIDv7, with a counter behind its time (RFC 9562 §6.2, method 1; at most 4,096 in a row are in order).
 * Schedules that are created together, and as a rule fire together, then stand together in every index on the uid. With random ones each
 * fire of a herd touches another page.
 */
export function newScheduleUid(now: Instant): string {
  made = (made + 1) % 0x1000;
  return uuidV7(now, made.toString(16).padStart(3, '0') + randomBytes(8).toString('hex'));
}
