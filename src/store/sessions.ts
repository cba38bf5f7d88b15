import type postgres from 'postgres';

/**
 * Statements that are prepared by name are parsed once in a session, and planned once where the server finds such a plan as good:
 * of a small batch that is a third of what it costs there. But they belong to a session, and with a pooler between, the next
 * statement may find itself in somebody else's. So they are used where sessions are proven to be this process's own; nowhere are
 * they needed.
 */
export interface Sessions {
  /** Undefined: not known yet, and used as if they were not. */
  areOwn: boolean | undefined;
}

/**
 * A pooler hands out keys of its own making, since a client of its has no one backend: only where the key names the backend that
 * answers is there nobody between.
 */
export async function isOwnSession(client: postgres.Sql): Promise<boolean> {
  const query = client.unsafe('SELECT pg_backend_pid() AS pid');
  const [row] = await query;
  return row !== undefined && row['pid'] === stateOf(query)?.pid;
}

/** Of one connection: which of its statements are prepared by name, and when their plans are too old. */
export interface Naming {
  names(text: unknown, parameters: unknown, options: unknown): boolean;
  /** True once in a while: what was planned must be planned again. */
  isTimeToReplan(): boolean;
}

/**
 * Named are those that ask for it and have come before: what never comes again must not stay in the session. Their plans go with it, and
 * the driver takes a new one within an hour or so. A plan that is kept is one for the tables as they were: of a partition that was empty,
 * one that reads all of it. The server looks at them again after it has analyzed them, which may be minutes later.
 */
export function namingIn(sessions: Sessions): Naming {
  const seen = new Set<unknown>();
  let sincePlanned = 0;
  return {
    names: (text, parameters, options) => {
      if (sessions.areOwn !== true || (options as { prepare?: unknown } | undefined)?.prepare !== true)
        return false;
      sincePlanned += isOfBatch(parameters) ? 1 : OF_A_LOOK;
      if (seen.has(text)) return true;
      if (seen.size >= MOST_SEEN) seen.clear();
      seen.add(text);
      return false;
    },
    isTimeToReplan: () => {
      if (sincePlanned < REPLAN_AFTER) return false;
      sincePlanned = 0;
      return true;
    },
  };
}

const MOST_SEEN = 100;
/** In batches: with these tables grow. Who only looks for work does so every second, and would mostly plan anew. */
const REPLAN_AFTER = 50;
const OF_A_LOOK = 1 / 8;

function isOfBatch(parameters: unknown): boolean {
  return Array.isArray(parameters) && parameters.some((one) => typeof one === 'string' && one.length > 1_000);
}

/** What the driver keeps with a statement that was sent. */
interface SentStatement {
  state?: { pid?: unknown } | null;
  handler?: (query: unknown) => unknown;
  /** The error after which it sent the statement once more, under another name. */
  retried?: unknown;
}

function stateOf(query: unknown): SentStatement['state'] {
  return (query as SentStatement).state;
}

/**
 * The driver would name all that it sends, its own COMMIT with it: where that name were missing, it would end an aborted transaction and
 * call it committed. So its leave to name is given for the moment in which it sends this one.
 */
export function letName(query: unknown, { options }: postgres.Sql): void {
  const sent = query as SentStatement;
  const { handler } = sent;
  const leave = options as { prepare: boolean };
  sent.handler = (own) => {
    leave.prepare = true;
    try {
      return handler?.(own);
    } finally {
      leave.prepare = false;
    }
  };
}

/** Whether the session did not have what the statement named, or had it already. */
export function foundForeignSession(latest: unknown): boolean {
  const error = (latest as SentStatement | undefined)?.retried;
  return error instanceof Error && 'code' in error && (error.code === '26000' || error.code === '42P05');
}
