import { useState } from 'preact/hooks';
import { Curve } from '../../parts/curves/curve.tsx';
import { Segments } from '../../parts/forms/segments.tsx';
import { Loaded } from '../../parts/states.tsx';
import { durationText } from '../../parts/time.tsx';
import { usePoll } from '../../state/poll.ts';
import { href } from '../../state/route.ts';
import { get } from '../../api/http.ts';
import type { Stats } from '../../../../clients/typescript/src/generated/types.gen.ts';

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

type Span = '1h' | '24h' | '7d';

/** How many windows of how many seconds a span has. The newest is counted anew each time, and a long one holds more. */
const SPANS: Record<Span, { windows: number; seconds: number; askEveryMs: number }> = {
  '1h': { windows: 30, seconds: 120, askEveryMs: 5_000 },
  '24h': { windows: 48, seconds: 1800, askEveryMs: 15_000 },
  '7d': { windows: 56, seconds: 3 * 3600, askEveryMs: 60_000 },
};

/** What became of the runs of one piece of time. */
interface Window {
  /** Unix seconds. */
  from: number;
  stats: Stats;
}

/** Runs of a window that is older than that have ended, but few: it is not asked for again. */
const SETTLED_AFTER_S = 600;
/** So few at once that the daemon has connections left for others. */
const AT_ONCE = 3;

const settled = new Map<string, Stats>();

/** Of all runs in the span up to now, oldest first. What was asked before is not asked again, but the newest windows. */
async function statsOfWindows(span: Span, signal: AbortSignal): Promise<Window[]> {
  const { windows, seconds } = SPANS[span];
  const now = Math.floor(Date.now() / 1000);
  const last = Math.floor(now / seconds) * seconds;
  const starts = Array.from({ length: windows }, (_, index) => last - (windows - 1 - index) * seconds);
  const found: Window[] = [];
  for (let index = 0; index < starts.length; index += AT_ONCE) {
    const some = starts.slice(index, index + AT_ONCE);
    found.push(...(await Promise.all(some.map((from) => statsOf(from, from + seconds, now, signal)))));
  }
  return found;
}

async function statsOf(from: number, to: number, now: number, signal: AbortSignal): Promise<Window> {
  const key = `${from}/${to}`;
  const known = settled.get(key);
  if (known) return { from, stats: known };
  const stats = await get<Stats>('/stats', { from: instant(from), to: instant(to) }, signal);
  if (to + SETTLED_AFTER_S < now) settled.set(key, stats);
  return { from, stats };
}

function instant(seconds: number): string {
  return new Date(seconds * 1000).toISOString();
}
