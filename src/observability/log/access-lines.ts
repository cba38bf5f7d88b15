import type { CallRefusal, TokenUse } from '../../core/access/access-events.ts';
import { isoInstant } from '../../core/instant.ts';
import type { Lines } from '../handlers.ts';

/** Refusals that an operator may have to act on. The rate limit bounds the number of these lines. */
const WARNINGS: Partial<Record<CallRefusal, string>> = {
  malformed: 'a call refused: what it sent has not the form of a token',
  mistyped: 'a call refused: its token is mistyped or cut off (the checksum is wrong)',
  unknown: 'a call refused: its token is not known here (any more)',
  expired: 'a call refused: its token has expired',
  proxyHeaders: 'a call refused: a trusted proxy sent no usable X-Firelock-User and X-Firelock-Role',
  foreignHost: 'a call refused: there are no tokens, and FIRELOCK_ALLOWED_HOSTS does not name this host',
  proxyMark: 'a call refused: it came through a proxy, and there are no tokens',
  otherSite: 'a call refused: it would change something, and comes from a page of another site',
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
  callRefused: (logger, { reason, address, name, sent, isOneOfMany = false }) => {
    const text = WARNINGS[reason];
    if (text === undefined || isOneOfMany) logger.debug({ reason, address, name }, 'a call refused');
    else logger.warn({ reason, address, ...(sent !== undefined && { sent }) }, text);
  },
} satisfies Lines;

/** The hash's first digits distinguish tokens of one name. */
function shown({ name, role, hash, expiresAt, lastUsedAt }: TokenUse): string {
  const end = expiresAt === null ? '' : `, until ${isoInstant(expiresAt)}`;
  const use = lastUsedAt === null ? ', not used since the start' : `, last used ${isoInstant(lastUsedAt)}`;
  return `${name} (${role}, ${hash}…${end}${use})`;
}
