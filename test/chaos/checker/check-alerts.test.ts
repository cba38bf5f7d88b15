import { expect, test } from 'vitest';
import { at, changed, run, violationsOf } from './clean-history.ts';
import { checkSeparate } from './check-alerts.ts';
import type { AlertRow, History, MessageRow } from './history.ts';
import { VIOLATIONS, createReport } from './violations.ts';

/** The first of three runs failed, the second one succeeded: an episode that was told of when it opened, and when it was over. */
function told(change: (history: History) => void = () => undefined): boolean {
  const alert = { id: 'a', scheduleUid: 'u', scheduleId: 'canary', kind: 'failed', runId: run(1).id };
  const given = (history: History) => {
    history.notifier = 'campaign';
    history.dump.runs[0] = run(1, { status: 'failed' });
    const finishedAt = (index: number) => history.dump.runs[index]?.finishedAt ?? 0;
    const row: AlertRow = { ...alert, since: finishedAt(0), until: finishedAt(1) };
    history.dump.alerts = [row];
    history.dump.messages = [message('m1', 'opened', 1), message('m2', 'recovered', 2)];
    history.notices = ['m1', 'm2'].map((messageId) => ({ at: at(5), messageId, delivered: true }));
    change(history);
  };
  return !violationsOf(changed(given, {})).includes('alerts');
}

const message = (runId: string, event: MessageRow['event'], seconds: number): MessageRow => ({
  ...{ runId, notifierId: 'campaign', event, status: 'succeeded', alertIds: ['a'], createdAt: at(seconds) },
});

const alertIn = ({ dump }: History, change: Partial<AlertRow>) => Object.assign(dump.alerts[0] ?? {}, change);
const messageIn = ({ dump }: History, index: number, change: Partial<MessageRow>) =>
  Object.assign(dump.messages[index] ?? {}, change);

test('an episode with a cause, an end and its two messages is none of them lost or doubled', () => {
  expect(told()).toBe(true);
  expect(told(({ notices }) => void notices.push({ at: at(6), messageId: 'm1', delivered: true }))).toBe(true);
});

test('an episode that no run opened, or no success closed, is noticed', () => {
  expect(told((history) => alertIn(history, { runId: null }))).toBe(false);
  expect(told((history) => alertIn(history, { until: (history.dump.alerts[0]?.since ?? 0) + 100 }))).toBe(false);
});

test('what was well before anybody heard of it is told once, and a message that it replaced does not arrive', () => {
  const replaced = (history: History) => {
    messageIn(history, 0, { status: 'cancelled' });
    history.notices.shift();
  };
  expect(told(replaced)).toBe(true);
  expect(told((history) => messageIn(history, 0, { status: 'cancelled' }))).toBe(false);
});

test('a recovery that overtakes its opening is noticed', () => {
  expect(told(({ notices }) => Object.assign(notices[0] ?? {}, { at: at(6) }))).toBe(false);
  expect(told(({ notices }) => Object.assign(notices[1] ?? {}, { at: at(6) }))).toBe(true);
});

test('a person may close an episode, without a word', () => {
  const paused = (history: History) => {
    alertIn(history, { until: at(3.5) });
    history.dump.runs = history.dump.runs.slice(0, 1);
    history.dump.messages.pop();
    history.notices.pop();
  };
  expect(told(paused)).toBe(true);
});

test('a message that was recorded just before the end may be under way', () => {
  const late = (seconds: number) => (history: History) => {
    history.dump.at = at(seconds);
    messageIn(history, 1, { status: 'waiting' });
    history.notices.pop();
  };
  expect(told(late(30))).toBe(true);
  expect(told(late(60))).toBe(false);
});

test('an episode may begin with a later failure than the first of its stretch, as effects come in any order', () => {
  const heardOfLater = (history: History) => {
    const { dump } = history;
    const again = run(1, { id: 'again', status: 'failed', finishedAt: at(1.4) });
    const well = run(3, { id: 'well', finishedAt: at(5) });
    dump.runs.push(again, well);
    alertIn(history, { since: at(1.4), runId: 'again', until: at(5) });
    messageIn(history, 1, { createdAt: at(5) });
  };
  expect(told(heardOfLater)).toBe(true);
  const overBefore = (history: History) => {
    heardOfLater(history);
    history.dump.runs.push(run(3, { id: 'well before', finishedAt: at(1.5) }));
    alertIn(history, { since: at(1.6) });
  };
  expect(told(overBefore)).toBe(false);
});

test('a message that is missing, doubled, undelivered or not recorded is noticed', () => {
  expect(told(({ dump }) => void dump.messages.shift())).toBe(false);
  expect(told(({ dump }) => void dump.messages.pop())).toBe(false);
  expect(told((history) => messageIn(history, 1, { event: 'opened' }))).toBe(false);
  expect(told((history) => messageIn(history, 0, { status: 'failed' }))).toBe(false);
  expect(told(({ notices }) => void notices.pop())).toBe(false);
  expect(told(({ notices }) => void notices.push({ at: at(6), messageId: 'x', delivered: true }))).toBe(false);
});

/** A failure 60 s after the schedule was made, and no success; what else is recorded of it? */
function untold(change: (history: History) => void = () => undefined): boolean {
  return !told((history) => {
    Object.assign(history, { notices: [] });
    const { dump } = history;
    Object.assign(dump, { runs: [run(1, { status: 'failed' })], alerts: [], messages: [] });
    dump.versions = dump.versions.slice(0, 1);
    Object.assign(dump.versions[0] ?? {}, { at: at(-60) });
    change(history);
  });
}

test('a failure that nothing followed, and that no episode tells of, is noticed', () => {
  expect(untold()).toBe(true);
});

test('a failure of a schedule that a person had paused needs no episode, unless it was enabled again before', () => {
  const edited = ({ dump }: History, seconds: number, marker: string) => {
    const version = dump.versions.length + 1;
    for (const made of dump.versions.slice(0, 1))
      dump.versions.push({ ...made, version, change: 'updated', at: at(seconds), marker });
  };
  const paused = (history: History) => edited(history, -30, 'm2');
  expect(untold(paused)).toBe(false);
  const enabledAgain = (history: History) => {
    paused(history);
    edited(history, -20, 'm1');
  };
  expect(untold(enabledAgain)).toBe(true);
});

/** Fails at 1, is well at 2, fails at 60, is well at 120, fails at 180 and is well at 190 s; told at 1, 2 and 60 s, and how it stands after five minutes. */
function flapping(change: (history: History) => void = () => undefined): boolean {
  return told((history) => {
    const { dump } = history;
    const ends = [1, 2, 60, 120, 180, 190];
    dump.at = at(900);
    dump.versions.splice(1);
    history.edits.splice(1);
    dump.runs = ends.map((second, index) => ({
      ...run(second, { status: index % 2 === 0 ? 'failed' : 'succeeded' }),
      finishedAt: at(second),
    }));
    alertIn(history, { since: at(1), until: at(190), runId: dump.runs[4]?.id ?? null });
    dump.messages = [
      ...[message('m1', 'opened', 1), message('m2', 'recovered', 20)],
      ...[message('m3', 'opened', 60), message('m4', 'recovered', 361)],
    ];
    history.notices = dump.messages.map(({ runId, createdAt }) => ({
      ...{ at: createdAt + 11_000, messageId: runId, delivered: true },
    }));
    change(history);
  });
}

test('an episode that opens again within five minutes is told of once in five minutes, and the last word is how it stands', () => {
  expect(flapping()).toBe(true);
  // Until then it may have heard something else.
  const held = (history: History) => {
    Object.assign(history.dump, { at: at(370), messages: history.dump.messages.slice(0, 3) });
    history.notices.pop();
  };
  expect(flapping(held)).toBe(true);
  expect(flapping((history) => (held(history), Object.assign(history.dump, { at: at(900) })))).toBe(false);
});

test('and told sooner, twice in a row, out of order, or more often than it opened, it is noticed', () => {
  expect(flapping((history) => messageIn(history, 3, { createdAt: at(200) }))).toBe(false);
  expect(flapping((history) => messageIn(history, 3, { event: 'opened' }))).toBe(false);
  const twice = (second: number) => (history: History) => {
    messageIn(history, 1, { event: 'opened', createdAt: at(second) });
    Object.assign(history.notices[1] ?? {}, { at: at(second + 0.4) });
  };
  expect(flapping(twice(1.5))).toBe(false);
  expect(flapping(({ notices }) => Object.assign(notices[2] ?? {}, { at: at(372.5) }))).toBe(false);
  const often = (history: History, seconds: number, event: MessageRow['event']) => {
    const one = message(`m${seconds}`, event, seconds);
    history.dump.messages.push(one);
    history.notices.push({ at: one.createdAt + 11_000, messageId: one.runId, delivered: true });
  };
  const both = (history: History, last: number) => {
    history.dump.at = at(9000);
    for (let seconds = 700; seconds < last; seconds += 700) {
      often(history, seconds, 'opened');
      often(history, seconds + 350, 'recovered');
    }
  };
  expect(flapping((history) => both(history, 1000))).toBe(true);
  expect(flapping((history) => both(history, 3000))).toBe(false);
});

test('where the word that it is over was taken back before it was sent, it is told twice in a row that it opened', () => {
  expect(
    flapping(({ dump, notices }) => {
      dump.messages.splice(1, 1);
      notices.splice(1, 1);
    }),
  ).toBe(true);
});

test('two ends in a row arrive in any order: both say that it is over', () => {
  const twice = (first: MessageRow['event']) => (history: History) => {
    const { dump, notices } = history;
    const ends = [1, 2, 10, 20];
    dump.versions.splice(1);
    history.edits.splice(1);
    dump.runs = ends.map((second, index) => ({
      ...run(second, { status: index % 2 === 0 ? 'failed' : 'succeeded' }),
      finishedAt: at(second),
    }));
    alertIn(history, { since: at(1), until: at(20) });
    dump.messages = [message('m1', first, 2), message('m2', 'recovered', 20)];
    Object.assign(notices[0] ?? {}, { at: at(40) });
    Object.assign(notices[1] ?? {}, { at: at(30) });
  };
  expect(told(twice('recovered'))).toBe(true);
  expect(told(twice('opened'))).toBe(false);
});

test('so it is where the next message gathered already when that was so', () => {
  expect(
    flapping((history) => {
      const { dump, notices } = history;
      for (const rows of [dump.messages, notices]) rows.splice(1, 1);
      messageIn(history, 1, { createdAt: at(1.5) });
      Object.assign(notices[1] ?? {}, { at: at(70) });
    }),
  ).toBe(true);
});

test('and a new episode instead of the one that opens again, or one that stays open, is noticed', () => {
  expect(flapping((history) => alertIn(history, { until: null }))).toBe(false);
  const found = (...since: number[]) => {
    const report = createReport(VIOLATIONS);
    const row = { scheduleUid: 'u', scheduleId: 'canary', kind: 'failed', runId: null };
    const rows = since.map((one) => ({ ...row, id: `${one}`, since: at(one), until: at(one + 1) }));
    checkSeparate(rows, report);
    return report.found.alerts.count;
  };
  expect(found(1, 303)).toBe(0);
  expect(found(1, 60, 400)).toBe(1);
});
