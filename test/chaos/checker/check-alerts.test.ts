import { expect, test } from 'vitest';
import { at, changed, run, violationsOf } from './clean-history.ts';
import type { AlertRow, History, MessageRow } from './history.ts';

/** The first of three runs failed, the second one succeeded: an episode that was told of when it opened, and when it was over. */
function told(change: (history: History) => void = () => undefined): boolean {
  const alert = { id: 'a', scheduleUid: 'u', scheduleId: 'canary', kind: 'failed', runId: run(1).id };
  const message = (runId: string, event: MessageRow['event']): MessageRow => ({
    ...{ runId, notifierId: 'campaign', event, status: 'succeeded', alertIds: ['a'] },
  });
  const given = (history: History) => {
    history.notifier = 'campaign';
    history.dump.runs[0] = run(1, { status: 'failed' });
    const finishedAt = (index: number) => history.dump.runs[index]?.finishedAt ?? 0;
    const row: AlertRow = { ...alert, since: finishedAt(0), until: finishedAt(1) };
    history.dump.alerts = [row];
    history.dump.messages = [message('m1', 'opened'), message('m2', 'recovered')];
    history.notices = ['m1', 'm2'].map((messageId) => ({ at: at(5), messageId, delivered: true }));
    change(history);
  };
  return !violationsOf(changed(given, {})).includes('alerts');
}

const alertIn = ({ dump }: History, change: Partial<AlertRow>) => Object.assign(dump.alerts[0] ?? {}, change);
const messageIn = ({ dump }: History, index: number, change: Partial<MessageRow>) =>
  Object.assign(dump.messages[index] ?? {}, change);

test('an episode with a cause, an end and its two messages is none of them lost or doubled', () => {
  expect(told()).toBe(true);
  expect(told(({ notices }) => void notices.push({ at: at(6), messageId: 'm1', delivered: true }))).toBe(
    true,
  );
});

test('an episode that no run opened, or no success closed, is noticed', () => {
  expect(told((history) => alertIn(history, { runId: null }))).toBe(false);
  expect(told((history) => alertIn(history, { until: (history.dump.alerts[0]?.since ?? 0) + 100 }))).toBe(
    false,
  );
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

test('a message that is missing, doubled, undelivered or not recorded is noticed', () => {
  expect(told(({ dump }) => void dump.messages.shift())).toBe(false);
  expect(told(({ dump }) => void dump.messages.pop())).toBe(false);
  expect(told((history) => messageIn(history, 1, { event: 'opened' }))).toBe(false);
  expect(told((history) => messageIn(history, 0, { status: 'failed' }))).toBe(false);
  expect(told(({ notices }) => void notices.pop())).toBe(false);
  expect(told(({ notices }) => void notices.push({ at: at(6), messageId: 'x', delivered: true }))).toBe(
    false,
  );
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
