/**
 * Guarantees: a message is closed when it has gathered, once over all instances, and then sent; open episodes are told of again; a
 *   schedule is found late within seconds, once over any instances, one whose calendar ends within minutes, and an episode of which the
 *   state is over is closed; what is older than the retention is deleted.
 * Transaction: one for a batch of messages, or of reminders, under the locks of the notifiers' rows; one for a batch of schedules, under
 *   the locks of theirs.
 * If the process dies here: the rows say what is left, and any instance goes on.
 */
import type { Lease } from '../runtime/instance-lease.ts';
import { createLoop, type Loop } from '../runtime/loop/loop.ts';
import { createPassed, createRests, type Passed, type Rests } from '../runtime/loop/rests.ts';
import { type Wake, wakeFor } from '../runtime/loop/wake.ts';
import type { LoopDeps } from '../postgres/database.ts';
import { type RowWork, seeTo } from '../postgres/see-to.ts';
import { databaseNow } from '../postgres/sql/rows.ts';
import { findAlertLooks, forgetOldAlerts } from '../store/alerts/alert-rows.ts';
import { findCalendarLooks } from '../store/calendars/calendar-rows.ts';
import { applyCauses, emitAlerts } from '../store/alerts/apply-causes.ts';
import { closeMessages, findGathered } from '../store/alerts/close-messages.ts';
import { findReminders, remind, type Reminder } from '../store/alerts/reminders.ts';

interface AlertWatchDeps extends LoopDeps {
  lease: Lease;
  wake: Wake;
  retentionDays: number;
  /** Where the dashboard is; null: messages have no links. */
  publicUrl: string | null;
}

const IDLE_MS = 2_000;
const BATCH = 100;
/** The API promises that lateness is noticed within ten seconds; a success has one of them to be written in. */
const LOOKS = 200;
/** Reminders are as many messages, where they go to PagerDuty. */
const REMINDERS = 500;
/** Before a row that another transaction has locked is tried again. */
const LOCKED_MS = 200;
/** Calendars end by the day. */
const CALENDARS_EVERY_MS = 300_000;
const FORGET_EVERY_MS = 600_000;
const FORGET_BATCH = 1_000;
const DAY_MS = 86_400_000;
/** Then the pass ends; the next one goes on with the step behind it. */
const PASS_MS = 10_000;

interface State extends AlertWatchDeps {
  /** Messages, reminders and schedules whose rows were refused. */
  rests: Rests;
  /** What other transactions had at the last looks. */
  messages: Passed;
  notifiers: Passed;
  schedules: Passed;
  /** Monotonic. */
  calendarsAt: number;
  forgetAt: number;
  /** The place of the step that is next. */
  next: number;
}

export function createAlertWatch(deps: AlertWatchDeps): Loop {
  const { clock, events } = deps;
  const rests = createRests({ clock, events, loop: 'alert-watch' });
  const passed = () => createPassed(clock, LOCKED_MS);
  const lookedAt = { messages: passed(), notifiers: passed(), schedules: passed() };
  const state: State = {
    ...{ ...deps, ...lookedAt, rests, next: 0 },
    ...{ calendarsAt: -Infinity, forgetAt: -Infinity },
  };
  const loop = createLoop({ name: 'alert-watch', clock, events, body: () => pass(state) });
  events.subscribe((event) => {
    if (event.type !== 'namedWritten' || event.noun !== 'calendar') return;
    state.calendarsAt = -Infinity;
    loop.wake();
  });
  return loop;
}

/** Each answers in how many ms it has more to do. */
const STEPS = [closeGathered, remindDue, look, lookAtCalendars, forget];

async function pass(state: State): Promise<number> {
  const { clock, lease } = state;
  if (!lease.isValid()) return IDLE_MS;
  const passEnd = clock.monotonic() + PASS_MS;
  let wait = IDLE_MS;
  for (const step of [...STEPS.slice(state.next), ...STEPS.slice(0, state.next)]) {
    if (clock.monotonic() >= passEnd) return 0;
    // Also where it fails: it must not keep the others from their turn.
    state.next = (state.next + 1) % STEPS.length;
    wait = Math.min(wait, await step(state));
  }
  return Math.max(0, wait);
}

async function closeGathered(state: State): Promise<number> {
  const { database, rests, wake, messages, publicUrl } = state;
  const besides = [...restingOf(rests, 'message'), ...messages.keys()];
  const { due, nextInMs } = await database.run((db) => findGathered(db, { limit: BATCH, besides }));
  await see(state, 'message', due, {
    keyOf: ({ runId }) => runId,
    work: async (some) => {
      const { toSend, locked } = await database.transaction((tx) => closeMessages(tx, some, publicUrl));
      messages.add(locked);
      wakeFor(wake, { toClaim: toSend });
    },
  });
  if (due.length === BATCH) return 0;
  return Math.min(nextInMs ?? IDLE_MS, messages.keys().length > 0 ? LOCKED_MS : IDLE_MS);
}

async function remindDue(state: State): Promise<number> {
  const { database, rests, wake, notifiers, publicUrl } = state;
  const besides = restingOf(rests, 'reminder').map(reminderOf);
  const asked = { limit: REMINDERS, besides, besideNotifiers: notifiers.keys() };
  const { due, nextInMs } = await database.run((db) => findReminders(db, asked));
  await see(state, 'reminder', due, {
    keyOf: ({ alertId, notifierId }) => `${alertId} ${notifierId}`,
    work: async (some) => {
      const { messages, locked } = await database.transaction((tx) => remind(tx, some, publicUrl));
      notifiers.add(locked);
      wakeFor(wake, { toClaim: messages.toSend });
    },
  });
  if (due.length === REMINDERS) return 0;
  return Math.min(nextInMs ?? IDLE_MS, due.length > 0 || notifiers.keys().length > 0 ? LOCKED_MS : IDLE_MS);
}

function reminderOf(key: string): Reminder {
  const [alertId = '', ...notifierId] = key.split(' ');
  return { alertId, notifierId: notifierId.join(' ') };
}

async function look(state: State): Promise<number> {
  // After an outage, the waiting outcomes are written before the lease is valid again: a success among them counts.
  return (await lookAtFound(state, findAlertLooks)) ? LOCKED_MS : IDLE_MS;
}

async function lookAtCalendars(state: State): Promise<number> {
  const { clock } = state;
  if (clock.monotonic() < state.calendarsAt) return IDLE_MS;
  state.calendarsAt = clock.monotonic() + CALENDARS_EVERY_MS;
  if (!(await lookAtFound(state, findCalendarLooks))) return IDLE_MS;
  state.calendarsAt = -Infinity;
  return LOCKED_MS;
}

/** Answers whether there may be more. */
async function lookAtFound(state: State, find: typeof findAlertLooks): Promise<boolean> {
  const { database, events, rests, wake, schedules, publicUrl } = state;
  const besides = [...restingOf(rests, 'schedule'), ...schedules.keys()];
  const uids = await database.run((db) => find(db, { limit: LOOKS, besides }));
  await see(state, 'schedule', uids, {
    keyOf: (uid) => uid,
    work: async (some) => {
      const applied = await database.transaction((tx) => applyCauses(tx, { looks: some }, publicUrl));
      schedules.add(applied.waiting);
      emitAlerts(events, applied);
      const { effects, messages } = applied;
      wakeFor(wake, { effects, toClaim: messages.toSend });
    },
  });
  return uids.length === LOOKS || schedules.keys().length > 0;
}

type Kind = 'message' | 'reminder' | 'schedule';

/** The keys of that kind. */
function restingOf(rests: Rests, kind: Kind): string[] {
  const begin = `${kind} `;
  return rests.keys().flatMap((key) => (key.startsWith(begin) ? [key.slice(begin.length)] : []));
}

function see<Row>(
  { rests, events }: State,
  kind: Kind,
  rows: readonly Row[],
  { keyOf, work }: Pick<RowWork<Row>, 'keyOf' | 'work'>,
): Promise<void> {
  const restOf = (row: Row) => `${kind} ${keyOf(row)}`;
  const refused = (row: Row, error: string) => events.emit({ type: 'alertLookRefused', key: restOf(row), error });
  return seeTo(rests, rows, { keyOf: restOf, work, refused });
}

async function forget(state: State): Promise<number> {
  const { database, clock, retentionDays } = state;
  if (clock.monotonic() < state.forgetAt) return IDLE_MS;
  const isMore = await database.transaction(async (tx) => {
    const before = (await databaseNow(tx)) - retentionDays * DAY_MS;
    return forgetOldAlerts(tx, before, FORGET_BATCH);
  });
  state.forgetAt = isMore ? -Infinity : clock.monotonic() + FORGET_EVERY_MS;
  return IDLE_MS;
}
