import { useState } from 'preact/hooks';
import { Loaded } from '../../parts/states.tsx';
import { Time } from '../../parts/time.tsx';
import { clockText, dayText, shownZone } from '../../state/zone.ts';
import { Bars } from './bars.tsx';
import { type Counted, useCount } from './counting.ts';
import { type Bar, barsOf, daysOf, herdsOf } from './counts.ts';
import { Herd } from './herd.tsx';
import { Week } from './week.tsx';
import './load.css';

const MINUTE_MS = 60_000;
const BAR_MS = 15 * MINUTE_MS;
const HOUR_MS = 60 * MINUTE_MS;
const WEEK_HOURS = 7 * 24;

function useHours(bucketMs: number, hours: number) {
  return useCount(`${hours} hours`, (now) => {
    // A whole bucket, so that a bar says the same wherever in it the clock is.
    const from = Math.floor(now / bucketMs) * bucketMs;
    return { from, to: from + hours * HOUR_MS, bucketSeconds: bucketMs / 1000 };
  });
}

export function LoadPage() {
  const zone = shownZone(null);
  const [chosen, setChosen] = useState<Bar | null>(null);
  const day = useHours(MINUTE_MS, 24);
  const week = useHours(HOUR_MS, WEEK_HOURS);
  return (
    <div class="stack">
      <h1>Load</h1>
      {[day, week].map(
        ({ data }, index) =>
          data?.isPart && (
            <p key={index} class="quiet" role="status">
              {data.schedules.toLocaleString('en')} schedules are counted so far, for the{' '}
              {index ? 'week' : 'day'}…
            </p>
          ),
      )}
      <section class="card">
        <h2>The next 24 hours, by the quarter of an hour ({zone})</h2>
        <Loaded from={day}>
          {({ items, from }) => (
            <Bars bars={barsOf(items, from, 24, BAR_MS)} zone={zone} onChoose={setChosen} />
          )}
        </Loaded>
      </section>
      <section class="card">
        <h2>Herds: minutes that stand out</h2>
        <Loaded from={day}>{({ items }) => <Herds items={items} onChoose={setChosen} />}</Loaded>
      </section>
      <section class="card">
        <h2>The week, by the hour ({zone})</h2>
        <Loaded from={week}>
          {({ items, from }) => (
            <Week
              zone={zone}
              days={daysOf(barsOf(items, from, WEEK_HOURS - 1, HOUR_MS), {
                dayOf: (at) => dayText(at, zone),
                hourOf: (at) => Number(clockText(at, zone).slice(0, 2)),
              })}
            />
          )}
        </Loaded>
      </section>
      {chosen && <Herd key={chosen.from} bar={chosen} zone={zone} onClose={() => setChosen(null)} />}
    </div>
  );
}

function Herds({ items, onChoose }: { items: Counted['items']; onChoose: (bar: Bar) => void }) {
  const herds = herdsOf(items);
  if (herds.length === 0) return <p class="quiet">None: the fires are well spread.</p>;
  return (
    <ul class="herds">
      {herds.map(({ at, fires }) => {
        const from = Date.parse(at);
        return (
          <li key={at}>
            <button type="button" onClick={() => onChoose({ from, to: from + MINUTE_MS, fires })}>
              {fires.toLocaleString('en')} fires in the minute from <Time at={at} />
            </button>
          </li>
        );
      })}
    </ul>
  );
}
