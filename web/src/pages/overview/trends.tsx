import { useState } from 'preact/hooks';
import { Curve } from '../../parts/curves/curve.tsx';
import { Segments } from '../../parts/forms/segments.tsx';
import { Loaded } from '../../parts/states.tsx';
import { durationText } from '../../parts/time.tsx';
import { usePoll } from '../../state/poll.ts';
import { href } from '../../state/route.ts';
import { SPANS, type Span, type Window, statsOfWindows } from './windows.ts';

const CHOICES = [
  ['1h', 'Hour'],
  ['24h', 'Day'],
  ['7d', 'Week'],
] as const;

/** What became of the runs of the last hour, day or week, in curves. */
export function Trends() {
  const [span, setSpan] = useState<Span>('1h');
  const windows = usePoll(span, (signal) => statsOfWindows(span, signal), {
    keep: true,
    everyMs: SPANS[span].askEveryMs,
  });
  return (
    <section class="stack" aria-label="Trends">
      <div class="bar end">
        <Segments label="Period" options={CHOICES} value={span} onChange={setSpan} />
      </div>
      <Loaded from={windows}>
        {(shown) => (
          <>
            <Figures windows={shown} span={span} />
            <div class="grid">
              <Curves windows={shown} span={span} />
            </div>
          </>
        )}
      </Loaded>
    </section>
  );
}

function Figures({ windows, span }: { windows: readonly Window[]; span: Span }) {
  const sum = (of: (window: Window) => number) => windows.reduce((total, window) => total + of(window), 0);
  const ended = sum(({ stats: s }) => s.succeededRuns + s.failedRuns + s.unknownRuns + s.abandonedRuns);
  const succeeded = sum(({ stats }) => stats.succeededRuns);
  const share = ended === 0 ? '–' : `${((100 * succeeded) / ended).toFixed(succeeded === ended ? 0 : 2)} %`;
  const figures: [name: string, value: number | string, status?: string][] = [
    ['Runs', sum(({ stats }) => stats.totalRuns), ''],
    ['Succeeded', share, 'succeeded'],
    ['Failed', sum(({ stats }) => stats.failedRuns), 'failed'],
    ['Unknown', sum(({ stats }) => stats.unknownRuns), 'unknown'],
    ['Abandoned', sum(({ stats }) => stats.abandonedRuns), 'abandoned'],
    ['Skipped', sum(({ stats }) => stats.skippedRuns), 'skipped'],
    ['Open', sum(({ stats }) => stats.openRuns), 'waiting,pending,running'],
    ['Lost', sum(({ stats }) => stats.lostRuns)],
    ['Recovered', sum(({ stats }) => stats.recoveredRuns)],
  ];
  return (
    <dl class="figures">
      {figures.map(([name, value, status]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            {status === undefined ? (
              written(value)
            ) : (
              <a href={href('/runs', { status, since: span })}>{written(value)}</a>
            )}
          </dd>
        </div>
      ))}
    </dl>
  );
}

function Curves({ windows, span }: { windows: readonly Window[]; span: Span }) {
  const at = windows.map(({ from }) => from);
  const of = (pick: (stats: Window['stats']) => number | null) => windows.map(({ stats }) => pick(stats));
  const { seconds } = SPANS[span];
  const now = Date.now() / 1000;
  /** The newest window is not over yet. */
  const minutesOf = (from: number) => Math.max(1, Math.min(seconds, now - from)) / 60;
  const perMinute = windows.map(({ from, stats }) => stats.totalRuns / minutesOf(from));
  return (
    <>
      <div class="card">
        <h2>Runs per minute</h2>
        <Curve
          label="Runs per minute"
          at={at}
          text={short}
          series={[{ name: 'all', tone: 'busy', values: perMinute }]}
        />
      </div>
      <div class="card">
        <h2>Lateness</h2>
        <Curve
          label="Lateness"
          at={at}
          text={durationText}
          series={[
            { name: 'median', tone: 'good', values: of(({ lateness }) => lateness.p50Ms) },
            { name: '95 %', tone: 'busy', values: of(({ lateness }) => lateness.p95Ms) },
            { name: '99 %', tone: 'doubt', values: of(({ lateness }) => lateness.p99Ms) },
          ]}
        />
      </div>
      <div class="card">
        <h2>Not succeeded</h2>
        <Curve
          label="Runs that did not succeed"
          at={at}
          whole
          text={short}
          series={[
            { name: 'failed', tone: 'bad', values: of((s) => s.failedRuns + s.abandonedRuns) },
            { name: 'unknown', tone: 'doubt', values: of((s) => s.unknownRuns) },
            { name: 'lost', tone: 'calm', values: of((s) => s.lostRuns) },
            { name: 'recovered', tone: 'good', values: of((s) => s.recoveredRuns) },
          ]}
        />
      </div>
    </>
  );
}

function written(value: number | string): string {
  return typeof value === 'string' ? value : value.toLocaleString('en');
}

function short(value: number): string {
  return value.toLocaleString('en', { notation: 'compact', maximumFractionDigits: value < 10 ? 1 : 0 });
}
