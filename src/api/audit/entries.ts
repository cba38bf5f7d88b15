import { LRUCache } from 'lru-cache';
import type { FastifyBaseLogger } from 'fastify';
import type { Caller } from '../../core/access/roles.ts';
import { scopeText, type Scope } from '../../core/access/scope.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Database } from '../../postgres/database.ts';
import { type RefusedCall, recordRefusals, type Auditor, auditorFor } from '../../store/audit/audit-rows.ts';

/**
 * For an operation that a caller asks for: the auditor, which writes the changes into the audit, under the caller's name; and the scope
 * that the operation keeps to.
 */
export function audited<Deps extends object>(
  deps: Deps,
  { caller }: { caller: Caller },
): Deps & { auditor: Auditor; scope: Scope } {
  return { ...deps, auditor: auditorFor(caller), scope: caller.scope };
}

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

interface State extends RefusalsDeps {
  minutes: LRUCache<string, Minute>;
  pending: RefusedCall[];
  writing: Promise<void> | null;
  timer: NodeJS.Timeout | undefined;
}

export function createRefusals({ database, clock, logger }: RefusalsDeps): Refusals {
  const minutes = new LRUCache<string, Minute>({ max: MAX_CALLERS });
  const state: State = { database, clock, logger, minutes, pending: [], writing: null, timer: undefined };
  return {
    note: (call) => note(state, call),
    close: async () => {
      clearTimeout(state.timer);
      endMinutes(state, () => true);
      await state.writing;
    },
  };
}

function note(state: State, call: RefusedCall): void {
  const { minutes, clock } = state;
  const { name, role, scope } = call.caller;
  const key = [role, scopeText(scope ?? []), name ?? ''].join(' ');
  const now = clock.monotonic();
  const known = minutes.get(key);
  if (known && now - known.began >= MINUTE_MS) endMinute(state, key, known);
  const minute = minutes.get(key) ?? { caller: call.caller, began: now, calls: 0 };
  minute.calls += 1;
  minutes.set(key, minute);
  if (minute.calls <= EACH_MINUTE) add(state, call);
  state.timer ??= setTimeout(() => look(state), MINUTE_MS).unref();
}

function look(state: State): void {
  const now = state.clock.monotonic();
  endMinutes(state, ({ began }) => now - began >= MINUTE_MS);
  state.timer = state.minutes.size > 0 ? setTimeout(() => look(state), MINUTE_MS).unref() : undefined;
}

function endMinutes(state: State, isOver: (minute: Minute) => boolean): void {
  for (const [key, minute] of [...state.minutes.entries()]) if (isOver(minute)) endMinute(state, key, minute);
}

function endMinute(state: State, key: string, { caller, calls }: Minute): void {
  state.minutes.delete(key);
  if (calls <= EACH_MINUTE) return;
  const detail = { moreCalls: calls - EACH_MINUTE };
  add(state, { caller, action: null, subject: null, scheduleId: null, name: null, detail });
}

function add(state: State, call: RefusedCall): void {
  if (state.pending.length < MAX_PENDING) state.pending.push(call);
  state.writing ??= write(state).finally(() => (state.writing = null));
}

async function write({ database, logger, pending }: State): Promise<void> {
  while (pending.length > 0) {
    const batch = pending.splice(0, BATCH);
    await database
      .run((db) => recordRefusals(db, batch))
      .catch((error: unknown) =>
        logger.debug({ err: error, lost: batch.length }, 'refused calls could not be recorded in the audit'),
      );
  }
}
