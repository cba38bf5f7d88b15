import type { AlertRow, MessageRow } from './history.ts';
import type { Transition } from './replay-episodes.ts';
import { grouped } from './timeline.ts';
import { type Report, isoText } from './violations.ts';

/** An episode that opens again within this time of its end is the same one, of which a notifier then hears once in this time at most. */
const FLAP_MS = 300_000;
/** What opens or heals within this time is told in one message. */
export const GATHER_MS = 10_000;
/** From a moment at which something is to be told to the message, on a busy machine. */
export const SLACK_MS = 30_000;
const CLOCKS_MS = 50;

interface Heard {
  /** What was recorded for its notifier, replaced ones too. */
  messages: readonly MessageRow[];
  arrivedAt: ReadonlyMap<string, number>;
  /** What the state machine makes of this episode. */
  transitions: readonly Transition[];
  /** A person closed it: without a word. */
  byPerson: boolean;
  /** It was over in between, and opened again. */
  wasOver: boolean;
}

/**
 * Its notifier hears of each opening and each end at most once, no opening overtakes an end nor an end an opening, and the last word is
 * how it stands. Where it opened again it hears nothing for five minutes after that, and after each further message.
 */
export function checkMessages(
  { kind, until }: AlertRow,
  { messages, arrivedAt, transitions, byPerson, wasOver }: Heard,
  { endedAt, say }: { endedAt: number; say: (what: string) => void },
): void {
  const sent = messages
    .filter(({ status, event }) => status !== 'cancelled' && (event === 'opened' || event === 'recovered'))
    .sort((a, b) => a.createdAt - b.createdAt);
  const count = (event: Transition['event'], told: MessageRow['event']) => {
    const known = kind === 'failed' ? transitions.filter((one) => one.event === event).length : Infinity;
    const most = wasOver ? known : 1;
    return { most, told: sent.filter((one) => one.event === told).length };
  };
  const [opened, over] = [count('opened', 'opened'), count('closed', 'recovered')];
  if (opened.told > opened.most) say(`was told ${opened.told} times, and opened ${opened.most} times`);
  if (over.told > (wasOver || until !== null ? over.most : 0)) say(`was told ${over.told} times to be over`);
  sent.forEach((message, index) => {
    const next = sent[index + 1];
    if (!next) return;
    // The word that it was over may have been taken back, as it had opened again before that word was sent.
    const [first, second] = [message, next].map(({ runId }) => arrivedAt.get(runId) ?? Infinity);
    const isOver =
      kind === 'failed'
        ? transitions.some((one) => one.event === 'closed' && isBetween(one.at, message, second))
        : wasOver;
    if (message.event === 'opened' && next.event === 'opened' && !isOver) say('was told twice in a row');
    const isOtherWord = message.event !== next.event;
    if (isOtherWord && first !== undefined && second !== undefined && second < first && first < Infinity)
      say(`was told to be ${next.event} before it was told to be ${message.event}`);
    const isHeld = sent.slice(0, index).some(({ event }) => event === 'recovered');
    if (isHeld && next.createdAt - message.createdAt < FLAP_MS - GATHER_MS)
      say('was told twice in five minutes, after it had opened again');
  });
  const last = sent.at(-1);
  const mayBeHeld = wasOver && last !== undefined && last.createdAt + FLAP_MS + SLACK_MS > endedAt;
  if (byPerson || mayBeHeld) return;
  if (last?.event !== (until === null ? 'opened' : 'recovered'))
    say(
      last === undefined
        ? 'was never told'
        : `is ${until === null ? 'open' : 'over'}, and was last told ${last.event}`,
    );
}

/** Until a message arrived: while it gathers, it is told of more than there was when it was recorded. */
function isBetween(at: number, message: MessageRow, arrivedAt = Infinity): boolean {
  return at >= message.createdAt - SLACK_MS && at <= arrivedAt + CLOCKS_MS;
}

/** Two episodes of failures are further apart: else the second one is the first, which opens again. */
export function checkSeparate(alerts: readonly AlertRow[], report: Report): void {
  const failed = alerts.filter(({ kind }) => kind === 'failed');
  for (const all of grouped(failed, ({ scheduleUid }) => scheduleUid).values()) {
    const sorted = [...all].sort((a, b) => a.since - b.since);
    sorted.forEach(({ kind, scheduleId, until }, index) => {
      const next = sorted[index + 1];
      if (next && (until === null || next.since < until + FLAP_MS - CLOCKS_MS))
        report.add(
          'alerts',
          `${kind} of ${scheduleId} since ${isoText(next.since)} is a new episode, and opened again`,
        );
    });
  }
}
