import type { Outcome } from '../../core/runs/attempts/outcome.ts';
import { type AttemptTime, WaitOver, notSentFor } from './attempt-time.ts';
import type { OAuthTokens, TokenClient } from './oauth-tokens.ts';

interface TokenUse {
  tokens: OAuthTokens;
  client: TokenClient;
  /** `send` keeps to it as well. */
  time: AttemptTime;
}

/**
 * Sends with an access token, and once more with another one if the target refuses the first (401): it may have ended
 * early, or been revoked. At most once as well, since a 401 says that nothing was done. Never throws, unless `send` does.
 */
export async function withToken(use: TokenUse, send: (token: string) => Promise<Outcome>): Promise<Outcome> {
  const { tokens, client } = use;
  let token: string;
  try {
    token = await tokenInTime(use);
  } catch (error) {
    return notSentFor(error);
  }
  const first = await send(token);
  if (!isRefused(first)) return first;
  tokens.invalidate(client, token);
  let another: string;
  try {
    another = await tokenInTime(use);
  } catch (error) {
    return refusedWithoutAnother(first, error);
  }
  return another === token ? first : send(another);
}

/** Why there is no token to send with; null: there is one. Never throws. */
export async function faultOfToken(use: TokenUse): Promise<Outcome | null> {
  try {
    await tokenInTime(use);
    return null;
  } catch (error) {
    return notSentFor(error);
  }
}

function tokenInTime({ tokens, client, time }: TokenUse): string | Promise<string> {
  const token = tokens.get(client);
  return typeof token === 'string' ? token : time.waitFor('access token', token);
}

type Refused = Extract<Outcome, { kind: 'rejected' | 'transient' }>;

/** However the target's rules judge a 401, unless they call it a success. */
function isRefused(outcome: Outcome): outcome is Refused {
  return (outcome.kind === 'rejected' || outcome.kind === 'transient') && outcome.statusCode === 401;
}

/** Not the final 401: with a token that can be had later, the target may take the run, which it did not take. */
function refusedWithoutAnother({ statusCode, body }: Refused, error: unknown): Outcome {
  const reason = error instanceof Error ? error.message : String(error);
  return {
    kind: 'transient',
    error: { kind: 'http', message: `the target answered 401, and then: ${reason}`, statusCode: 401 },
    statusCode,
    body,
    retryAfterSeconds: null,
    byRule: true,
    senderStopped: error instanceof WaitOver && error.senderStopped,
  };
}
