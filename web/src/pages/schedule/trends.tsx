import { get } from '../../api/http.ts';
import type { Run, Schedule, Stats } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { Curve } from '../../parts/curves/curve.tsx';
import { Figures } from '../../parts/figures.tsx';
import { Loaded } from '../../parts/states.tsx';
import { durationText } from '../../parts/time.tsx';
import { usePoll } from '../../state/poll.ts';
import { durationOf, percentile } from './figures.ts';
import { callPath } from '../../state/schedule-paths.ts';

const MAX_RUNS = 100;
const HOUR_MS = 3_600_000;
const EVERY_MS = 30_000;
/** Each run of the period is read to count it. */
const MAX_COUNTED = 5_000;

/** What is backfilled was due long ago: how late it is says nothing. */
const ON_THEIR_OWN = 'schedule,catchUp,manual,after';

/** How late its runs are, and how long they take: the last of them, and all of the last day, or hour where a day has very many. */
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
  return (
    <section class="card">
      <h2>Trends</h2>
      <Loaded from={runs}>
        {({ items }) => (
          <div class="stack">
            <LastHours id={id} hours={hoursCounted(items)} />
            <Curves schedule={schedule} runs={items} />
          </div>
        )}
      </Loaded>
    </section>
  );
}

/** By how often it ran lately. */
function hoursCounted(runs: readonly Run[]): number {
  const [newest, oldest] = [runs[0], runs.at(-1)];
  if (!newest || !oldest || runs.length < MAX_RUNS) return 24;
  const tookMs = Date.parse(newest.scheduledFor) - Date.parse(oldest.scheduledFor);
  return (24 * HOUR_MS * runs.length) / tookMs > MAX_COUNTED ? 1 : 24;
}

function LastHours({ id, hours }: { id: string; hours: number }) {
  const stats = usePoll(
    `stats ${id} ${hours}`,
    (signal) =>
      get<Stats>(callPath(id, '/stats'), { from: new Date(Date.now() - hours * HOUR_MS).toISOString() }, signal),
    { everyMs: EVERY_MS },
  );
  return <Loaded from={stats}>{(data) => <Counts stats={data} hours={hours} />}</Loaded>;
}

function Counts({ stats, hours }: { stats: Stats; hours: number }) {
  const { totalRuns, failedRuns, unknownRuns, openRuns, successRate, lateness, recoveredRuns } = stats;
  const rate = successRate === null ? '–' : `${(successRate * 100).toFixed(successRate === 1 ? 0 : 1)} %`;
  const figures = [
    [hours === 1 ? 'runs, last hour' : `runs, last ${hours} h`, totalRuns],
    ['succeeded', rate],
    ['failed', failedRuns],
    ['unknown', unknownRuns],
    ['open', openRuns],
    ['recovered', recoveredRuns],
    ['late by, median', durationText(lateness.p50Ms)],
    ['late by, p95', durationText(lateness.p95Ms)],
  ] as const;
  return <Figures figures={figures} />;
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
              of the last {runs.length} runs that were not backfilled: median {durationText(percentile(values, 0.5))},
              p95 {durationText(percentile(values, 0.95))}
            </span>
          </h3>
          <Curve label={name} at={at} series={[{ name: 'latest', tone, values }]} text={durationText} zone={timezone} />
        </div>
      ))}
    </div>
  );
}
