import type { ComponentChildren } from 'preact';
import type { WholeRun } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { Labels } from '../../parts/labels.tsx';
import { Time, durationText } from '../../parts/time.tsx';

type Fact = readonly [name: string, value: ComponentChildren];

/** Times and numbers; what does not apply is left out. */
export function Facts({ run, zone }: { run: WholeRun; zone: string | null }) {
  const time = (name: string, at: string | null, relative = false): Fact[] =>
    at === null ? [] : [[name, <Time at={at} zone={zone} relative={relative} />]];
  const facts: Fact[] = [
    ...time('Fire time', run.scheduledFor, true),
    ...time('Stands for fires since', run.coalescedFrom),
    ...time('Recorded', run.createdAt),
    ...time('Next attempt', run.finishedAt === null ? run.nextAttemptAt : null, true),
    ...time('Expires, unless it has begun', run.finishedAt === null ? run.expiresAt : null, true),
    ...time('Handed off', run.handedOffAt),
    ...time('Its worker has until', run.leaseUntil, true),
    ...time('Completion is due', run.completionDueAt, true),
    ...time('Found lost', run.lostAt),
    ...time('In doubt until', run.inDoubtUntil),
    ...time('Ended', run.finishedAt),
    ['Late by', durationText(run.latenessMs)],
    ['Trigger', run.trigger],
    ['Attempts', run.attempts],
    ...numbers(run),
    ...texts(run),
  ];
  return (
    <section class="card">
      <h2>Facts</h2>
      <dl class="facts">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function numbers(run: WholeRun): Fact[] {
  const { failures, recoveries, coalesced, progress, scheduleVersion, unmet, unmetReason } = run;
  return [
    ...(unmet.length > 0 ? [['Expected', unmet.map((bound) => UNMET[bound]).join(', ')] as const] : []),
    ...(unmetReason === null ? [] : [['Its result', <span class="user">{unmetReason}</span>] as const]),
    ...(failures > 0 ? [['Failures that count', failures] as const] : []),
    ...(recoveries > 0 ? [['Taken over by recovery', `${recoveries} times`] as const] : []),
    ...(coalesced > 0 ? [['Stands for', `${coalesced} other fires`] as const] : []),
    ...(progress === null ? [] : [['Progress', `${Math.round(progress * 100)} %`] as const]),
    ...(scheduleVersion === null ? [] : [['Version', scheduleVersion] as const]),
  ];
}

const UNMET = {
  start: 'not begun in time',
  finish: 'not ended in time',
  tooFast: 'ended too fast',
  result: 'another result',
};

function texts({ name, key, labels, priority, limit, workerId, claimedBy, id }: WholeRun): Fact[] {
  const user = (label: string, text: string | null): Fact[] =>
    text === null ? [] : [[label, <span class="user">{text}</span>]];
  return [
    ...user('Priority', priority === 'normal' ? null : priority),
    ...user('Limit', limit),
    ...user('Key', key),
    ...(Object.keys(labels).length > 0 ? [['Labels', <Labels labels={labels} />] as const] : []),
    ...user('Worker', workerId),
    ...user('Claimed by', claimedBy),
    ...user('Name', name),
    ['Id', <code>{id}</code>],
  ];
}
