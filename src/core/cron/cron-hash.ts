import { hash } from 'node:crypto';
import type { Field } from './cron-fields.ts';

/**
 * What firelock picks for `H` and `?`: SHA-256 of `id/field`, read as one unsigned number (its first byte the most
 * significant), modulo how many values there are. 0 … count − 1, the same on every instance and for ever.
 */
export function pick(scheduleId: string, { key }: Field, count: number): number {
  const digest = hash('sha256', `${scheduleId}/${key}`, 'hex');
  return Number(BigInt(`0x${digest}`) % BigInt(count));
}
