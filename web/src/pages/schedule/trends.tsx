import { get } from '../../api/http.ts';
import type { Run, Schedule, Stats } from '../../api/generated/types.gen.ts';
import { Curve } from '../../parts/curves/curve.tsx';
import { Loaded } from '../../parts/states.tsx';
import { durationText } from '../../parts/time.tsx';
import { usePoll } from '../../state/poll.ts';
import { durationOf, percentile } from './figures.ts';
import { callPath } from './path.ts';

const MAX_RUNS = 100;
const DAY_MS = 86_400_000;
const EVERY_MS = 30_000;

/** What is backfilled was due long ago: how late it is says nothing. */
const ON_THEIR_OWN = 'schedule,catchUp,manual,after';

/** How late its runs are, and how long they take: the last of them, and all of the last day. */
export function Trends({ schedule }: { schedule: Schedule }) {
  const { id } = schedule;
  const runs = usePoll(
    `trends ${id}`,
    (signal) =>
      get<{ items: Run[] }>(
        callPath(id, '/runs'),
        { limit: MAX_RUNS, status: 'succeeded,failed,unknown', trigger: ON_THEIR_OWN },
        signal,
      ),
    { everyMs: EVERY_MS },
  );
  const stats = usePoll(
    `stats ${id}`,
    (signal) =>
      get<Stats>(callPath(id, '/stats'), { from: new Date(Date.now() - DAY_MS).toISOString() }, signal),
    { everyMs: EVERY_MS },
  );
  return (
    <section class="card">
      <h2>Trends</h2>
      <div class="stack">
        <Loaded from={stats}>{(data) => <LastDay stats={data} />}</Loaded>
        <Loaded from={runs}>{({ items }) => <Curves schedule={schedule} runs={items} />}</Loaded>
      </div>
    </section>
  );
}

function LastDay({ stats }: { stats: Stats }) {
  const { totalRuns, failedRuns, unknownRuns, openRuns, successRate, lateness, recoveredRuns } = stats;
  const rate = successRate === null ? '–' : `${(successRate * 100).toFixed(successRate === 1 ? 0 : 1)} %`;
  const figures = [
    ['runs, last 24 h', totalRuns],
    ['succeeded', rate],
    ['failed', failedRuns],
    ['unknown', unknownRuns],
    ['open', openRuns],
    ['recovered', recoveredRuns],
    ['late by, median', durationText(lateness.p50Ms)],
    ['late by, p95', durationText(lateness.p95Ms)],
  ] as const;
  return (
    <dl class="figures">
      {figures.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Curves({ schedule: { timezone }, runs }: { schedule: Schedule; runs: readonly Run[] }) {
  if (runs.length < 2) return <p class="quiet">Curves appear after two runs that were not backfilled.</p>;
  const inOrder = [...runs].reverse();
  const at = inOrder.map(({ scheduledFor }) => Date.parse(scheduledFor) / 1000);
  const lateness = inOrder.map(({ latenessMs }) => latenessMs);
  const durations = inOrder.map(durationOf);
  return (
    <div class="grid">
      {(
        [
          ['Late by', 'busy', lateness],
          ['Took', 'good', durations],
        ] as const
      ).map(([name, tone, values]) => (
        <div key={name}>
          <h3>
            {name}{' '}
            <span class="quiet">
              of the last {runs.length} runs that were not backfilled: median{' '}
              {durationText(percentile(values, 0.5))}, p95 {durationText(percentile(values, 0.95))}
            </span>
          </h3>
          <Curve
            label={name}
            at={at}
            series={[{ name: 'latest', tone, values }]}
            text={durationText}
            zone={timezone}
          />
        </div>
      ))}
    </div>
  );
}
