import { hash } from 'node:crypto';
import type { Field } from './cron-fields.ts';

/**
 * The value that firelock chooses for `H` and `?`: SHA-256 of `id/field`, read as one unsigned number (its first byte
 * is the most significant), modulo the number of values. The result is 0 … count − 1, the same on every instance and
 * for ever.
 */
export function pick(scheduleId: string, { key }: Field, count: number): number {
  const digest = hash('sha256', `${scheduleId}/${key}`, 'hex');
  return Number(BigInt(`0x${digest}`) % BigInt(count));
}
