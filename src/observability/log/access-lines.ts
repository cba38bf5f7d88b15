import type { CallRefusal, TokenUse } from '../../core/access/access-events.ts';
import { isoInstant } from '../../core/instant.ts';
import type { Lines } from '../handlers.ts';

/** A caller sent credentials that the API does not accept. The rate limit bounds the number of these lines. */
const WARNINGS: Partial<Record<CallRefusal, string>> = {
  malformed: 'a call refused: what it sent has not the form of a token',
  mistyped: 'a call refused: its token is mistyped or cut off (the checksum is wrong)',
  unknown: 'a call refused: its token is not known here (any more)',
  expired: 'a call refused: its token has expired',
  proxyHeaders: 'a call refused: a trusted proxy sent no usable X-Firelock-User and X-Firelock-Role',
};

export const ACCESS_LINES = {
  openToAnybody: (logger, { host }) =>
    logger.warn(
      { host },
      'FIRELOCK_ALLOW_ANONYMOUS=1 and no tokens: every caller that reaches this address may do everything (docs/security.md)',
    ),
  tokensRead: (logger, { tokens }) =>
    logger.info(
      { tokens: tokens.map(shown) },
      'the API asks for a token; these are known, with their last use',
    ),
  tokensKept: (logger, { faults }) =>
    logger.error(
      { faults },
      'the file of tokens has faults: the tokens that were known before stay in force',
    ),
  tokenUsed: (logger, { token }) =>
    logger.info({ token: shown(token) }, 'first use of this token today, or since the start'),
  callRefused: (logger, { reason, address, name }) => {
    const text = WARNINGS[reason];
    if (text === undefined) logger.debug({ reason, address, name }, 'a call refused');
    else logger.warn({ reason, address }, text);
  },
} satisfies Lines;

/** The hash's first digits distinguish tokens of one name. */
function shown({ name, role, hash, expiresAt, lastUsedAt }: TokenUse): string {
  const end = expiresAt === null ? '' : `, until ${isoInstant(expiresAt)}`;
  const use = lastUsedAt === null ? ', not used since the start' : `, last used ${isoInstant(lastUsedAt)}`;
  return `${name} (${role}, ${hash}…${end}${use})`;
}
