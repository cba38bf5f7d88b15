import { randomUUID } from 'node:crypto';
import { Webhook } from 'standardwebhooks';

/** A secret of a target. */
export const secretOf = (fill: number) => `whsec_${Buffer.alloc(32, fill).toString('base64')}`;

/** The id of a run of this moment. */
export function runIdOf(at = Date.now()): string {
  const time = at.toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`;
}

interface Handoff {
  runId: string;
  attempt: number;
  secret: string;
  payload?: unknown;
  /** When it is signed. */
  at?: Date;
}

/** A handoff as firelock sends it, signed by the library of Standard Webhooks. */
export function signedHandoff({ runId, attempt, secret, payload = null, at = new Date() }: Handoff) {
  const body = JSON.stringify({
    runId,
    runName: null,
    scheduleId: 'signed',
    scheduledFor: at.toISOString(),
    trigger: 'manual',
    attempt,
    recovery: null,
    payload,
  });
  const headers = {
    'content-type': 'application/json',
    'webhook-id': runId,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': new Webhook(secret).sign(runId, at, body),
  };
  return { method: 'POST', headers, body };
}
