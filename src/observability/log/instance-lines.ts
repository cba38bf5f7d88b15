import type { CallRefusal, TokenUse } from '../../core/access/access-events.ts';
import { type Instant, isoInstant, isoOrNull } from '../../core/instant.ts';
import { OWN_SHORTAGES } from '../../core/own-resources.ts';
import type { Mode } from '../../core/installation.ts';
import { reasonOf } from '../../runtime/reason.ts';
import { type Lines, line } from '../handlers.ts';

/** This instance and what surrounds it: the other instances, the database, its history, callers, maintenance, traces. */
export const INSTANCE_LINES: Lines = {
  instanceRegistered: line.info('registered as an instance'),
  instanceReplaced: line.warn(
    'the other instances had declared this one dead (it was frozen, or cut off from the database); it continues under a new id',
  ),
  instancesDeclaredDead: line.warn('silent instances declared dead; their runs are taken over'),
  instanceLeft: (logger, { instanceId, unfinished, cutOff }) => {
    if (unfinished + cutOff > 0)
      logger.warn(
        { instanceId, unfinished, cutOff },
        'the instance left with unfinished work; other instances take it over',
      );
    else logger.info({ instanceId }, 'the instance left');
  },
  databaseWentBack: line.error(
    'the database lost commits that it had confirmed (a failover, or a restored backup); fires of the lost time are planned again under their old ids (docs/restoring.md)',
  ),
  resourcesLacked: (logger, { code }) =>
    logger.warn(
      { code, reason: OWN_SHORTAGES.get(code) },
      'this instance lacks what it takes to send: its runs go back without a failure, and it claims none until it can',
    ),
  resourcesBack: line.info('this instance can send again, and claims runs'),
  descriptorsCounted: (logger, { needed, limit }) => {
    if (limit !== null && limit < needed)
      logger.warn(
        { needed, limit },
        'this process may have fewer file descriptors than it needs with these settings (ulimit -n, LimitNOFILE)',
      );
    else logger.info({ needed, limit }, 'file descriptors that this process may need with these settings');
  },
  migrationsApplied: (logger, { count }) =>
    logger.info({ count }, count > 0 ? 'migrations applied' : 'the schema is up to date'),
  migrationWaits: (logger, { wait }) =>
    logger.warn(
      wait,
      wait.statementTimeout === null
        ? 'a migration waits for a transaction that uses its table; this instance starts its work afterwards, and instances of the previous version continue'
        : 'a migration is cut off by the statement_timeout of its role or database; this instance starts its work afterwards, and instances of the previous version continue',
    ),
  historyDropped: (logger, { days, definitions }) => {
    if (days.length + definitions === 0) return;
    logger.info({ days: days.map(dateOf), definitions }, 'history older than the retention dropped');
  },
  partitionsCreated: (logger, { days }) => {
    if (days.length > 0) logger.debug({ days: days.map(dateOf) }, 'partitions of history created for coming days');
  },
  historyDelayed: (logger, { work, day, error, forMs, lasts }) => {
    const fields = { day: dateOf(day), reason: reasonOf(error) };
    if (lasts)
      logger.warn(
        { ...fields, minutes: Math.round(forMs / 60_000) },
        'a partition of history cannot be created because another transaction is in the way; this is retried, and nothing stops meanwhile',
      );
    else logger.debug(fields, `a partition of history could not be ${DONE[work]}; this is retried`);
  },
  installationChanged: (logger, { state: { mode, since, until, reason, because, isReadOnly } }) =>
    logger.warn(
      {
        ...{ mode, since: isoOrNull(since), until: isoOrNull(until), reason, readOnly: isReadOnly },
        because: because === 'setting' ? 'FIRELOCK_OBSERVE' : 'database',
      },
      MEANING[mode],
    ),
  tookOver: (logger, { tookOver: { at, since, by }, observesOn }) => {
    const fields = { at: isoInstant(at), since: isoInstant(since), by };
    if (observesOn)
      logger.warn(
        fields,
        'this installation has taken over, and this instance still only observes, since FIRELOCK_OBSERVE is set',
      );
    else
      logger.warn(fields, 'this installation has taken over: this instance works, and fires what was due since then');
  },
  openToAnybody: line.warn(
    'FIRELOCK_ALLOW_ANONYMOUS=1 and no tokens: every caller that reaches this address may do everything (docs/security.md)',
  ),
  tokensRead: (logger, { tokens }) =>
    logger.info({ tokens: tokens.map(shown) }, 'API tokens read, with their last use'),
  tokensKept: line.error('the file of tokens has faults; the tokens known before stay in force'),
  tokenUsed: (logger, { token }) =>
    logger.info({ token: shown(token) }, 'first use of this token today, or since the start'),
  callRefused: (logger, { reason, address, name, sent, isOneOfMany = false }) => {
    const text = REFUSED[reason];
    if (text === undefined || isOneOfMany) logger.debug({ reason, address, name }, 'call refused');
    else logger.warn({ reason, address, ...(sent !== undefined && { sent }) }, text);
  },
  traceCollectorAway: (logger, { error }) =>
    logger.warn(
      { reason: error },
      'the trace collector does not accept spans; fires are not affected, and traces have gaps if this takes long',
    ),
  traceCollectorBack: line.info('the trace collector accepts spans again'),
};

const DONE = { create: 'created', drop: 'dropped' };

function dateOf(at: Instant): string {
  return isoInstant(at).slice(0, 10);
}

const MEANING: Record<Mode, string> = {
  works: 'no maintenance: fires that were due meanwhile are planned now, by the catchUp of each schedule',
  plansNothing: 'maintenance: no schedule is planned; recorded runs are handed off',
  holds: 'maintenance: no schedule is planned, and no run is handed off',
  observes: 'this instance only observes: it answers reads, and plans and sends nothing until a take-over',
};

/** Refusals that an operator may have to act on. The rate limit bounds the number of these lines. */
const REFUSED: Partial<Record<CallRefusal, string>> = {
  malformed: 'call refused: what it sent does not have the form of a token',
  mistyped: 'call refused: its token is mistyped or cut off (the checksum is wrong)',
  unknown: 'call refused: its token is unknown, or known no longer',
  expired: 'call refused: its token has expired',
  proxyHeaders: 'call refused: a trusted proxy sent no valid X-Firelock-User and X-Firelock-Role',
  foreignHost: 'call refused: there are no tokens, and FIRELOCK_ALLOWED_HOSTS does not name this host',
  proxyMark: 'call refused: there are no tokens, and the call came through a proxy',
  otherSite: 'call refused: a page of another site tried to change something',
};

/** The hash's first digits distinguish tokens of one name. */
function shown({ name, role, hash, expiresAt, lastUsedAt }: TokenUse): string {
  const end = expiresAt === null ? '' : `, until ${isoInstant(expiresAt)}`;
  const use = lastUsedAt === null ? ', not used since the start' : `, last used ${isoInstant(lastUsedAt)}`;
  return `${name} (${role}, ${hash}…${end}${use})`;
}
