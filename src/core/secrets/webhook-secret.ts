import { strictBase64 } from './secret-keys.ts';

const PREFIX = 'whsec_';
const MIN_BYTES = 24;
const MAX_BYTES = 64;

export const WEBHOOK_SECRET_RULE = `"${PREFIX}" and base64 of ${MIN_BYTES} to ${MAX_BYTES} bytes`;

/** The bytes of a signing secret, as Standard Webhooks writes it; null: the text is no secret. */
export function webhookKey(secret: string): Buffer | null {
  if (!secret.startsWith(PREFIX)) return null;
  const bytes = strictBase64(secret.slice(PREFIX.length));
  return bytes !== null && bytes.length >= MIN_BYTES && bytes.length <= MAX_BYTES ? bytes : null;
}
