import type { ComponentChildren } from 'preact';
import type { Schedule } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { stringifyJson, textOf } from '../../api/json.ts';
import { Rules, bodyWords } from '../../parts/endpoint/endpoint-words.tsx';
import { JsonView } from '../../parts/json-view.tsx';
import { Below, FollowedLink } from '../../parts/links.tsx';
import { Time } from '../../parts/time.tsx';

type NamedFact = readonly [name: string, value: ComponentChildren];

function dayFacts({ exclude, onExcluded, every, pick }: Schedule): NamedFact[] {
  const facts: NamedFact[] = [];
  if (every !== null) facts.push(['every', `${every.n} ${every.unit}s, from ${every.from} on`]);
  if (exclude !== null)
    facts.push(['not on', [...exclude.weekdays, ...exclude.dates, ...exclude.calendars].join(', ')]);
  if (onExcluded !== 'skip') facts.push(['excluded days', `made on the ${onExcluded} one that is not`]);
  if (pick !== null) facts.push(['only day', `${pick.nth.join(', ')} of each ${pick.of} (-1: the last)`]);
  return facts;
}

/** What the schedule says: when it fires, what it calls, and by which rules. */
export function Definition({ schedule }: { schedule: Schedule }) {
  const { timezone, startAt, endAt, limit, retry, jitterSeconds, payload } = schedule;
  const facts: NamedFact[] = [
    ['fires', <Trigger key="fires" schedule={schedule} />],
    ['zone', timezone ?? 'UTC'],
  ];
  if (startAt !== null) facts.push(['from', <Time key="from" at={startAt} zone={timezone} />]);
  if (endAt !== null) facts.push(['until', <Time key="until" at={endAt} zone={timezone} />]);
  facts.push(...dayFacts(schedule));
  facts.push(['target', <Target key="target" schedule={schedule} />]);
  facts.push(...endpointFacts(schedule.target));
  if (limit !== null) facts.push(['limit', limit]);
  if (jitterSeconds > 0) facts.push(['jitter', `up to ${jitterSeconds} s`]);
  facts.push(
    ['when late', `${schedule.catchUp} (after ${schedule.graceSeconds} s)`],
    ['overlap', schedule.overlap],
    ['delivery', schedule.delivery],
    ['completion', schedule.completion],
    ['attempts', `${retry.maxAttempts}, ${schedule.timeoutSeconds} s each`],
    ['priority', schedule.priority],
  );
  if (schedule.expiresAfterSeconds !== null) facts.push(['expires after', `${schedule.expiresAfterSeconds} s`]);
  if (schedule.pauseAfterFailures !== null) facts.push(['pauses after', `${schedule.pauseAfterFailures} failures`]);
  if (schedule.successWithinSeconds !== null) facts.push(['late after', `${schedule.successWithinSeconds} s`]);
  if (schedule.expect !== null) facts.push(['expected', expectedWords(schedule.expect)]);
  return (
    <section class="card">
      <h2>Definition</h2>
      <dl class="facts">
        {facts.map(([name, value]) => (
          <Fact key={name} name={name}>
            {value}
          </Fact>
        ))}
        {textOf(payload) !== 'null' && (
          <Fact name="payload">
            <JsonView label="Payload" value={payload} />
          </Fact>
        )}
      </dl>
    </section>
  );
}

function expectedWords(expected: Expected): string {
  const { startWithinSeconds: start, finishWithinSeconds: finish, atLeastSeconds: least, result } = expected;
  return [
    ...(start === null ? [] : [`begins within ${start} s`]),
    ...(finish === null ? [] : [`ends within ${finish} s`]),
    ...(least === null ? [] : [`succeeds after ${least} s at the earliest`]),
    ...(result === null ? [] : [`has the result ${stringifyJson(result)}`]),
  ].join(', ');
}

type Expected = NonNullable<Schedule['expect']>;

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <>
      <dt>{name}</dt>
      <dd class="user">{children}</dd>
    </>
  );
}

function Trigger({ schedule: { cron, everySeconds, at, after, timezone } }: { schedule: Schedule }) {
  if (cron !== null)
    return (
      <>
        {[cron].flat().map((expression) => (
          <code key={expression} class="cron">
            {expression}
          </code>
        ))}
      </>
    );
  if (everySeconds !== null) return <>every {everySeconds} s</>;
  if (at !== null)
    return (
      <>
        once, at <Time at={at} zone={timezone} />
      </>
    );
  if (after === null) return null;
  return (
    <>
      when runs of <FollowedLink id={after.scheduleId} /> end as {after.on.join(', ')}
    </>
  );
}

function Target({ schedule: { target } }: { schedule: Schedule }) {
  if (target === null) return <>none: another scheduler runs the job</>;
  if (target.type === 'pull') return <>queue {target.queue}</>;
  const headers = Object.keys(target.headers);
  return (
    <>
      <code>{target.method}</code> <Below connection={target.connection} />
      {target.url}
      {headers.length > 0 && <span class="quiet"> with {headers.join(', ')}</span>}
    </>
  );
}

function endpointFacts(target: Schedule['target']): NamedFact[] {
  if (target?.type !== 'http') return [];
  const { body, outcome } = target;
  const text = typeof body === 'string' ? null : body.template;
  return [
    ['body', bodyWords(target)],
    ...(text === null ? [] : [['text of the body', <Text key="text" text={text} />] as const]),
    ...(outcome === null ? [] : [['answers', <Rules key="answers" rules={outcome} />] as const]),
  ];
}

/** As it was written: a template is often no JSON before it is filled in. */
function Text({ text }: { text: string }) {
  return (
    <pre class="user" aria-label="Text of the body" tabIndex={0}>
      {text}
    </pre>
  );
}
