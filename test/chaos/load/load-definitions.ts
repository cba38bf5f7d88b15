import { join } from 'node:path';
import type { Definition } from '../checker/history.ts';
import { COMMANDS } from '../cluster/workers.ts';
import type { Random } from '../random.ts';

/** By a schedule's number: what is more than a plain cron schedule. Four in a row are of one kind; every fourth is edited. */
const KINDS = ['overlap', 'plain', 'skipMissed', 'interval', 'allMissed', 'jitter', 'limited', 'command'] as const;
/** The one limit of a campaign. */
export const LIMIT = 'narrow';

/** The one connection of a campaign. Its token is short-lived, so it is fetched again and again, by whatever instance lives. */
export const CONNECTION = 'endpoints';

export function connectionBody(port: number): Record<string, unknown> {
  const origin = `http://127.0.0.1:${port}`;
  return {
    url: `${origin}${THROUGH}`,
    headers: { 'x-team': 'chaos' },
    auth: { type: 'oauth2', tokenUrl: `${origin}/token`, clientId: 'chaos', clientSecret: 'a secret' },
  };
}

/** The one notifier of a campaign, and where its messages go. */
export const NOTIFIER = 'campaign';
export const NOTICES = '/notices';

export function notifierBody(port: number): Record<string, unknown> {
  const target = { type: 'http', url: `http://127.0.0.1:${port}${NOTICES}` };
  return { channel: { type: 'webhook', target } };
}

/** Where the receiver expects the login of the connection. */
export const THROUGH = '/through';
export const TOKEN = 'of-the-campaign';
/** What the envelope says of a run, as an endpoint might want it. */
const TEMPLATE =
  '{"through":true,"runId":"{{runId}}","runName":{{runName}},"scheduleId":"{{scheduleId}}","scheduledFor":"{{scheduledFor}}",' +
  '"trigger":"{{trigger}}","attempt":{{attempt}},"payload":{{payload}},"marker":"{{payload/marker}}"}';

/** Of so many schedules, so few runs may be under way at once. */
export function maxRunningOf(schedules: number): number {
  const limited = Array.from({ length: schedules }, (_, index) => KINDS[Math.floor(index / 4) % KINDS.length]);
  return Math.max(1, Math.ceil(limited.filter((kind) => kind === 'limited').length / 3));
}

const COMMAND_KINDS = ['slow', 'slow', 'loud', 'codes'] as const;

const OVERLAPS = ['skip', 'queue', 'replace'] as const;

/** About 0.7 fires a second for each schedule; a quarter at most once, half of those with a lookup. */
export function definitionOf(index: number, { commands }: { commands: boolean }): Definition {
  const lookup = index % 8 >= 4 && index % 4 <= 1;
  const own = {
    delivery: index % 4 === 1 ? 'atMostOnce' : 'atLeastOnce',
    lookup,
    endpoint: index % 3 === 1,
  } as const;
  return { ...plain(index), ...own, ...special(index, commands) };
}

export function plain(index: number): Definition {
  const crons = ['* * * * * *', '* * * * * *', '*/2 * * * * *', '* * * * * *', '*/3 * * * * *', '*/5 * * * * *'];
  const rare = ['* * * * *', '*/2 * * * *', '30 * * * * *'];
  return {
    cron: (index % 20 === 19 ? rare[index % 3] : crons[index % crons.length]) ?? '',
    everySeconds: null,
    jitterSeconds: 0,
    catchUp: 'latest',
    catchUpLimit: 100,
    graceSeconds: 60,
    overlap: 'allow',
    limit: null,
    holdMs: 0,
    enabled: true,
    delivery: 'atLeastOnce',
    lookup: false,
    endpoint: false,
    command: null,
    maxAttempts: 100,
    timeoutSeconds: 1 + (index % 3 === 0 ? 1 : 0),
  };
}

function special(index: number, commands: boolean): Partial<Definition> {
  const kind = KINDS[Math.floor(index / 4) % KINDS.length];
  if (kind === 'overlap') {
    // Most of its runs take longer than the time between two fires.
    const times = { cron: '* * * * * *', holdMs: 1_300, timeoutSeconds: 3 };
    return { ...times, overlap: OVERLAPS[index % OVERLAPS.length] ?? 'skip' };
  }
  if (kind === 'limited') {
    // Many at one moment, more of them than may run at once; the rest of the time is enough for all.
    return { cron: '*/2 * * * * *', holdMs: 400, timeoutSeconds: 3, limit: LIMIT };
  }
  if (kind === 'command' && commands) {
    const command = COMMAND_KINDS[index % 4] ?? 'slow';
    return { cron: '*/4 * * * * *', command, lookup: false, endpoint: false };
  }
  if (kind === 'interval') return { cron: null, everySeconds: 1 + (index % 3) };
  if (kind === 'jitter') return { cron: '*/5 * * * * *', jitterSeconds: index % 2 === 0 ? 3 : 60 };
  if (kind === 'skipMissed') return { catchUp: 'skip', graceSeconds: 2 };
  if (kind === 'allMissed') return { catchUp: 'all', graceSeconds: 1, catchUpLimit: index % 2 === 0 ? 3 : 100 };
  return {};
}

/** What one edit changes. */
export function change(before: Definition, random: Random): Partial<Definition> {
  const drawn = random.next();
  if (drawn < 0.3) return { enabled: !before.enabled };
  if (drawn >= 0.6) return {};
  if (before.everySeconds !== null) return { everySeconds: random.pick([1, 2, 4]) };
  return { cron: random.pick(['* * * * * *', '*/2 * * * * *', '*/4 * * * * *', '* * * * *']) };
}

/** Where requests go to, and where commands write down what they do. */
interface Places {
  port: number;
  journal: string;
}

/** As the API takes it; of what is as usual, nothing. */
export function bodyOf(
  id: string,
  definition: Definition,
  marker: string,
  { port, journal }: Places,
): Record<string, unknown> {
  const { cron, everySeconds, enabled, maxAttempts, timeoutSeconds, command } = definition;
  const usual: Partial<Definition> = plain(0);
  const named = ['jitterSeconds', 'catchUp', 'catchUpLimit', 'graceSeconds', 'overlap', 'limit', 'delivery'] as const;
  return {
    id,
    ...(everySeconds === null ? { cron } : { everySeconds }),
    enabled,
    timeoutSeconds,
    ...Object.fromEntries(
      named.flatMap((name) => (definition[name] === usual[name] ? [] : [[name, definition[name]]])),
    ),
    target: command === null ? httpTarget(id, definition, port) : { type: 'pull', queue: COMMANDS },
    payload: command === null ? { marker } : { marker, command: `sh ${COMMAND_FILE} ${journal} ${command} ${marker}` },
    retry: { maxAttempts, minBackoffSeconds: 0.2, maxBackoffSeconds: 2 },
  };
}

const COMMAND_FILE = join(import.meta.dirname, '..', 'cluster', 'command.sh');

function httpTarget(id: string, { endpoint, lookup, holdMs }: Definition, port: number): object {
  const origin = endpoint ? '' : `http://127.0.0.1:${port}`;
  return {
    type: 'http',
    url: `${origin}/fire/${id}${holdMs > 0 ? `?hold=${holdMs}` : ''}`,
    ...(endpoint
      ? {
          connection: CONNECTION,
          body: { template: TEMPLATE },
          outcome: { require: { pointer: '/taken', equals: true }, otherwise: 'retry' },
        }
      : {}),
    ...(lookup ? { lookup: { url: `${origin}/lookup/{{runId}}` } } : {}),
  };
}
