import { sql } from 'drizzle-orm';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { recordsOf } from '../../postgres/sql/rows.ts';

/** A login of a browser, by the hash of what its cookie says; it counts as the token of that hash. */
interface Session {
  idHash: string;
  tokenHash: string;
  /** It began behind https: the cookie goes nowhere else. */
  isSecure: boolean;
}

/** How long a session lasts after it was used last. */
export const SESSION_SECONDS = 12 * 3_600;
/** It is not written more often than that. */
const RENEWED_AFTER_SECONDS = 600;
/** Of one token: the oldest ends where another begins. */
const MOST_OF_TOKEN = 100;
const MOST_FORGOTTEN = 1_000;

/** Forgets those that are over, too. */
export async function beginSession(tx: Transaction, { idHash, tokenHash, isSecure }: Session): Promise<void> {
  await tx.execute(sql`-- beginSession
    DELETE FROM sessions WHERE id_hash IN (
      SELECT id_hash FROM sessions WHERE expires_at <= (SELECT clock_timestamp()) LIMIT ${MOST_FORGOTTEN})
      OR id_hash IN (SELECT id_hash FROM sessions WHERE token_hash = ${tokenHash} ORDER BY expires_at DESC OFFSET ${MOST_OF_TOKEN - 1})`);
  await tx.execute(sql`-- beginSession
    INSERT INTO sessions (id_hash, token_hash, is_secure, expires_at)
    VALUES (${idHash}, ${tokenHash}, ${isSecure}, clock_timestamp() + make_interval(secs => ${SESSION_SECONDS}))`);
}

type FoundSession = Omit<Session, 'idHash'> & { isOld: boolean };

/** `isOld`: it is to be renewed. Null: there is none, or it is over. */
export async function findSession(db: Executor, idHash: string): Promise<FoundSession | null> {
  const [session = null] = await recordsOf<FoundSession>(db)(sql`-- findSession
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
    SELECT token_hash, is_secure,
      expires_at < clock.now + make_interval(secs => ${SESSION_SECONDS - RENEWED_AFTER_SECONDS}) AS is_old
    FROM sessions, clock WHERE id_hash = ${idHash} AND expires_at > clock.now`);
  return session;
}

export async function renewSession(db: Executor, idHash: string): Promise<void> {
  await db.execute(sql`-- renewSession
    UPDATE sessions SET expires_at = clock_timestamp() + make_interval(secs => ${SESSION_SECONDS}) WHERE id_hash = ${idHash}`);
}

export async function endSession(db: Executor, idHash: string): Promise<void> {
  await db.execute(sql`-- endSession
    DELETE FROM sessions WHERE id_hash = ${idHash}`);
}
