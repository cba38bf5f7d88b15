import { strictBase64 } from './secret-keys.ts';

const PREFIX = 'whsec_';
const MIN_BYTES = 24;
const MAX_BYTES = 64;

export const WEBHOOK_SECRET_RULE = `"${PREFIX}" and base64 of ${MIN_BYTES} to ${MAX_BYTES} bytes`;

/** The bytes that a secret signs with, as Standard Webhooks writes it; null: it is none. */
export function webhookKey(secret: string): Buffer | null {
  if (!secret.startsWith(PREFIX)) return null;
  const bytes = strictBase64(secret.slice(PREFIX.length));
  return bytes !== null && bytes.length >= MIN_BYTES && bytes.length <= MAX_BYTES ? bytes : null;
}
