import { type Instant, isoInstant } from '../../instant.ts';
import type { AlertKind, Message, MessageEvent, ToldAlert } from '../alert.ts';

/** What every channel says of an episode, in words for a person who was just woken. */
interface AlertText {
  /** What, in a line: the schedule and what is wrong, or well again. */
  headline: string;
  /** Since when, and for how long. */
  when: string;
  /** The error, in one line; null: none is known. */
  error: string | null;
  /** What it means; null: it is over. */
  meaning: string | null;
}

/** `maxError`: of so many characters. */
export function alertText({ event, at }: Message, alert: ToldAlert, maxError: number): AlertText {
  const { scheduleId, kind, since, until, error, overBy } = alert;
  const isOver = event === 'recovered';
  const end = until ?? at;
  const lasted = howLong(end - since);
  return {
    headline: isOver
      ? overBy === null
        ? `${scheduleId} ${HEALED[kind]}`
        : `Over: ${scheduleId} ${brokenWords(alert)} (${overBy})`
      : `${event === 'reminder' ? 'Still: ' : ''}${scheduleId} ${brokenWords(alert)}`,
    when: isOver
      ? `from ${utcText(since)} to ${utcText(end)} (${lasted})`
      : `since ${utcText(since)}${end - since < MINUTE_MS ? '' : ` (for ${lasted})`}`,
    error: error === null ? null : inOneLine(error, maxError),
    meaning: isOver ? null : meaningOf(alert),
  };
}

/** That another notifier could not deliver it; null: it is told for the first time. */
export function passedOnText({ fallbackFor }: Message): string | null {
  return fallbackFor === null ? null : `The notifier ${fallbackFor} could not deliver this.`;
}

/** Of a message about no episode, or about several. */
export function titleOf({ notifier, event, alerts, more }: Message): string {
  if (event === 'test') return `Test of the notifier ${notifier}: it works`;
  const count = alerts.length + more;
  return `${count} ${TITLES[event]}`;
}

const TITLES: Record<Exclude<MessageEvent, 'test'>, string> = {
  opened: 'things broke',
  recovered: 'things are well again',
  reminder: 'things are still broken',
};

function brokenWords({ kind, status }: ToldAlert): string {
  if (kind !== 'failed') return BROKEN[kind];
  if (status === 'unknown') return 'has a run whose outcome is unknown';
  return status === 'abandoned' ? 'has a run that was given up' : BROKEN.failed;
}

const BROKEN: Record<AlertKind, string> = {
  failed: 'failed',
  late: 'is late: no run has succeeded in time',
  unstarted: 'has a run that did not start in time',
  slow: 'has a run that did not finish in time',
  tooFast: 'has a run that succeeded too fast',
  result: 'has a run whose result is not as expected',
  missed: 'missed fires',
  paused: 'was paused by firelock',
  error: 'cannot be planned',
  calendar: 'excludes a calendar that ends',
};

const HEALED: Record<AlertKind, string> = {
  failed: 'succeeds again',
  late: 'succeeds again',
  unstarted: 'starts in time again',
  slow: 'finishes in time again',
  tooFast: 'takes its time again',
  result: 'has results as expected again',
  missed: 'fires again',
  paused: 'is enabled again',
  error: 'is planned again',
  calendar: 'has calendars that go on',
};

function meaningOf({ kind, status }: ToldAlert): string {
  if (kind !== 'failed') return MEANINGS[kind];
  if (status === 'unknown') return 'Whether the work was done is unknown, and firelock does not repeat it.';
  if (status === 'abandoned') return 'The work may not be done, and firelock does not try any more.';
  return MEANINGS.failed;
}

const MEANINGS: Record<AlertKind, string> = {
  failed: 'The work of this run is not done, and firelock does not try it again. The next fire comes as planned.',
  late: 'No run has succeeded for longer than successWithinSeconds.',
  unstarted: 'Its first attempt had not begun when startWithinSeconds had passed.',
  slow: 'It had not ended when finishWithinSeconds had passed since its first attempt began.',
  tooFast: 'It succeeded before atLeastSeconds had passed since its first attempt began: was there nothing to do?',
  result: 'It succeeded, and what it answered is not what expect.result says: was the work done?',
  missed: 'Fires were not made when they were due.',
  paused: 'It does not fire until somebody enables it.',
  error: 'It does not fire until this is corrected.',
  calendar:
    'On the days behind the end of the calendar it fires as if there were none: add them, and move validUntil on.',
};

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** `45 s`, `5 min`, `2 h 5 min`, `3 d 4 h`. */
function howLong(ms: number): string {
  const positive = Math.max(0, ms);
  if (positive < MINUTE_MS) return `${Math.floor(positive / 1000)} s`;
  if (positive < HOUR_MS) return `${Math.floor(positive / MINUTE_MS)} min`;
  const [big, small, of, name, nameOfSmall] =
    positive < DAY_MS ? ([HOUR_MS, MINUTE_MS, 60, 'h', 'min'] as const) : ([DAY_MS, HOUR_MS, 24, 'd', 'h'] as const);
  const rest = Math.floor(positive / small) % of;
  return `${Math.floor(positive / big)} ${name}${rest === 0 ? '' : ` ${rest} ${nameOfSmall}`}`;
}

function utcText(at: Instant): string {
  return `${isoInstant(at).slice(0, 19).replace('T', ' ')} UTC`;
}

/** They show text in another order than it has. */
const BIDI = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Without line breaks and other control characters, and cut between characters. */
export function inOneLine(text: string, most: number): string {
  const line = text
    .toWellFormed()
    .replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .replace(BIDI, '')
    .trim();
  const characters = Array.from(line);
  return characters.length <= most ? line : `${characters.slice(0, most - 1).join('')}…`;
}
