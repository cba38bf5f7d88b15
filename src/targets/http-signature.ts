import { type KeyObject, createHmac, createSecretKey } from 'node:crypto';
import { WEBHOOK_SECRET_RULE, webhookKey } from '../core/secrets/webhook-secret.ts';

/** In the order of the secrets. */
export type SigningKeys = readonly KeyObject[];

/** @throws TypeError if a secret is invalid; only another program can store such a secret */
export function signingKeys(secret: string | readonly string[] | null): SigningKeys {
  if (secret === null) return NO_KEYS;
  return [secret].flat().map((one) => {
    const bytes = webhookKey(one);
    if (bytes === null) throw new TypeError(`the secret is not ${WEBHOOK_SECRET_RULE}`);
    return createSecretKey(bytes);
  });
}

const NO_KEYS: SigningKeys = [];

/** As Standard Webhooks defines it: one signature for each key. `signed` is `id.timestamp.body`. */
export function signatureOf(keys: SigningKeys, signed: string): string {
  return keys.map((key) => `v1,${createHmac('sha256', key).update(signed).digest('base64')}`).join(' ');
}
