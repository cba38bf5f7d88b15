/**
 * Guarantees: a message is closed when it has gathered, once over all instances, and then sent; open episodes are told of again; those
 *   that no effect ends are looked at; what is older than the retention is deleted.
 * Transaction: one for each message and each notifier, under the lock of the notifier's row; one for a batch of looks.
 * If the process dies here: the rows say what is left, and any instance goes on.
 */
import { payloadOf } from '../core/alerts/texts/payload-of.ts';
import type { Clock } from '../runtime/clock.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import type { Lease } from '../runtime/instance-lease.ts';
import { inHalves } from '../runtime/loop/batch.ts';
import { type Loop, createLoop } from '../runtime/loop/loop.ts';
import { type Rests, createRests } from '../runtime/loop/rests.ts';
import { type Wake, wakeFor } from '../runtime/loop/wake.ts';
import { reasonOf } from '../runtime/reason.ts';
import type { Database } from '../postgres/database.ts';
import { batchFaultOf } from '../postgres/errors.ts';
import { databaseNow } from '../postgres/sql/database-now.ts';
import { findAlertLooks, forgetOldAlerts, lookAtAlerts } from '../store/alerts/alert-looks.ts';
import { type MessageTexts, closeMessage, findGathered } from '../store/alerts/close-messages.ts';
import { findReminders, remind } from '../store/alerts/reminders.ts';

interface AlertWatchDeps {
  database: Database;
  clock: Clock;
  events: EventBus;
  lease: Lease;
  wake: Wake;
  retentionDays: number;
  /** Where the dashboard is; null: messages have no links. */
  publicUrl: string | null;
}

const IDLE_MS = 2_000;
const BATCH = 100;
/** Before a row that another transaction has locked is tried again. */
const LOCKED_MS = 200;
const FORGET_EVERY_MS = 600_000;
const FORGET_BATCH = 1_000;
const DAY_MS = 86_400_000;

interface State extends AlertWatchDeps {
  texts: MessageTexts;
  /** Messages, notifiers and episodes whose rows were refused. */
  rests: Rests;
  /** Monotonic. */
  forgetAt: number;
}

export function createAlertWatch(deps: AlertWatchDeps): Loop {
  const { clock, events, publicUrl } = deps;
  const texts = { payloadOf, urlOf: urlsBelow(publicUrl) };
  const rests = createRests({ clock, events, loop: 'alert-watch' });
  const state: State = { ...deps, texts, rests, forgetAt: -Infinity };
  return createLoop({ name: 'alert-watch', clock, events, body: () => pass(state) });
}

/** The page of the run that opened the episode, else that of its schedule. */
function urlsBelow(publicUrl: string | null): MessageTexts['urlOf'] {
  const base = publicUrl?.replace(/\/+$/, '');
  return ({ scheduleId, runId }) => {
    if (base === undefined) return null;
    return runId === null ? `${base}/schedules/${scheduleId}` : `${base}/runs/${runId}`;
  };
}

async function pass(state: State): Promise<number> {
  if (!state.lease.isValid()) return IDLE_MS;
  const waits = [await closeGathered(state), await remindDue(state), await look(state)];
  await forget(state);
  return Math.max(0, Math.min(IDLE_MS, ...waits));
}

async function closeGathered(state: State): Promise<number> {
  const { database, rests, wake } = state;
  const { due, nextInMs } = await database.run((db) => findGathered(db, BATCH));
  const resting = new Set(rests.keys());
  let wait = nextInMs ?? IDLE_MS;
  for (const message of due) {
    if (resting.has(message.runId)) continue;
    const goesOn = await apart(state, message.runId, () =>
      database.transaction((tx) => closeMessage(tx, message, state.texts)),
    );
    if (goesOn === null) wait = Math.min(wait, LOCKED_MS);
    if (goesOn === true) wakeFor(wake, { toClaim: 1 });
  }
  return due.length === BATCH ? 0 : wait;
}

async function remindDue(state: State): Promise<number> {
  const { database, rests } = state;
  const { notifierIds, nextInMs } = await database.run(findReminders);
  const resting = new Set(rests.keys());
  let wait = nextInMs ?? IDLE_MS;
  for (const id of notifierIds) {
    if (resting.has(`notifier ${id}`)) continue;
    await apart(state, `notifier ${id}`, () => database.transaction((tx) => remind(tx, id)));
    wait = Math.min(wait, LOCKED_MS);
  }
  return wait;
}

async function look(state: State): Promise<number> {
  const { database, rests, wake } = state;
  const besides = rests.keys().filter((key) => !key.startsWith('notifier '));
  const ids = await database.run((db) => findAlertLooks(db, { limit: BATCH, besides }));
  let effects = 0;
  await inHalves(ids, {
    work: async (some) => {
      effects += await database.transaction((tx) => lookAtAlerts(tx, some));
    },
    faultOf: batchFaultOf,
    wasSetAside: (id) => rests.wasSetAside(id),
    setAside: (id, error) => setAside(state, id, error),
  });
  wakeFor(wake, { effects });
  return ids.length === BATCH ? LOCKED_MS : IDLE_MS;
}

/** A row that the database refuses rests, and holds up no other. Null: it was refused. */
async function apart<T>(state: State, key: string, work: () => Promise<T>): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    if (batchFaultOf(error) === null) throw error;
    setAside(state, key, error);
    return null;
  }
}

function setAside({ rests, events }: State, key: string, error: unknown): void {
  rests.add(key);
  events.emit({ type: 'alertLookRefused', key, error: reasonOf(error) });
}

async function forget(state: State): Promise<void> {
  const { database, clock, retentionDays } = state;
  if (clock.monotonic() < state.forgetAt) return;
  const isMore = await database.transaction(async (tx) => {
    const before = (await databaseNow(tx)) - retentionDays * DAY_MS;
    return forgetOldAlerts(tx, before, FORGET_BATCH);
  });
  state.forgetAt = isMore ? -Infinity : clock.monotonic() + FORGET_EVERY_MS;
}
