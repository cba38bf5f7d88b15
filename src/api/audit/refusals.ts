import { LRUCache } from 'lru-cache';
import type { FastifyBaseLogger } from 'fastify';
import type { Caller } from '../../core/access/roles.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Database } from '../../postgres/database.ts';
import { type RefusedCall, recordRefusals } from '../../store/audit/record-audit.ts';

/** Writes refused calls into the audit, after the answer: such an entry may be lost, and never delays an answer. */
interface Refusals {
  note(call: RefusedCall): void;
  /** Writes the entries that are left. */
  close(): Promise<void>;
}

interface RefusalsDeps {
  database: Database;
  clock: Clock;
  logger: Pick<FastifyBaseLogger, 'debug'>;
}

/** A caller that is refused more often within a minute gets one more entry, with the number of the other refusals. */
const EACH_MINUTE = 10;
const MINUTE_MS = 60_000;
const MAX_CALLERS = 1_000;
/** While the database is away, entries beyond this number are dropped. */
const MAX_PENDING = 1_000;
const BATCH = 100;

interface Minute {
  caller: Caller;
  began: number;
  calls: number;
}

// eslint-disable-next-line max-lines-per-function -- a closure: its functions share its state, and are short
export function createRefusals({ database, clock, logger }: RefusalsDeps): Refusals {
  const minutes = new LRUCache<string, Minute>({ max: MAX_CALLERS });
  const pending: RefusedCall[] = [];
  let writing: Promise<void> | null = null;
  let timer: NodeJS.Timeout | undefined;

  function add(call: RefusedCall): void {
    if (pending.length < MAX_PENDING) pending.push(call);
    writing ??= write().finally(() => (writing = null));
  }

  async function write(): Promise<void> {
    while (pending.length > 0) {
      const batch = pending.splice(0, BATCH);
      await database
        .run((db) => recordRefusals(db, batch))
        .catch((error: unknown) =>
          logger.debug(
            { err: error, lost: batch.length },
            'refused calls could not be recorded in the audit',
          ),
        );
    }
  }

  function end(key: string, { caller, calls }: Minute): void {
    minutes.delete(key);
    if (calls <= EACH_MINUTE) return;
    const detail = { moreCalls: calls - EACH_MINUTE };
    add({ caller, action: null, subject: null, scheduleId: null, detail });
  }

  function endMinutes(isOver: (minute: Minute) => boolean): void {
    for (const [key, minute] of [...minutes.entries()]) if (isOver(minute)) end(key, minute);
  }

  function look(): void {
    const now = clock.monotonic();
    endMinutes(({ began }) => now - began >= MINUTE_MS);
    timer = minutes.size > 0 ? setTimeout(look, MINUTE_MS).unref() : undefined;
  }

  return {
    note: (call) => {
      const { name, role } = call.caller;
      const key = `${role} ${name ?? ''}`;
      const now = clock.monotonic();
      const known = minutes.get(key);
      if (known && now - known.began >= MINUTE_MS) end(key, known);
      const minute = minutes.get(key) ?? { caller: call.caller, began: now, calls: 0 };
      minute.calls += 1;
      minutes.set(key, minute);
      if (minute.calls <= EACH_MINUTE) add(call);
      timer ??= setTimeout(look, MINUTE_MS).unref();
    },
    close: async () => {
      clearTimeout(timer);
      endMinutes(() => true);
      await writing;
    },
  };
}
