import { useState } from 'preact/hooks';
import { get } from '../../api/http.ts';
import type { Load } from '../../api/generated/types.gen.ts';
import { Loaded } from '../../parts/states.tsx';
import { Time } from '../../parts/time.tsx';
import { usePoll } from '../../state/poll.ts';
import { clockText, dayText, shownZone } from '../../state/zone.ts';
import { Bars } from './bars.tsx';
import { type Bar, barsOf, daysOf, herdsOf } from './counts.ts';
import { Herd } from './herd.tsx';
import { Week } from './week.tsx';
import './load.css';

/** The daemon goes through all schedules each time. */
const EVERY_MS = 300_000;
const MINUTE_MS = 60_000;
const BAR_MS = 15 * MINUTE_MS;
const HOUR_MS = 60 * MINUTE_MS;
const WEEK_HOURS = 7 * 24;

interface Counted extends Load {
  from: number;
}

async function countFrom(bucketMs: number, hours: number, signal: AbortSignal): Promise<Counted> {
  // A whole bucket, so that a bar says the same wherever in it the clock is.
  const from = Math.floor(Date.now() / bucketMs) * bucketMs;
  const [begin, end] = [from, from + hours * HOUR_MS].map((at) => new Date(at).toISOString());
  const load = await get<Load>('/load', { from: begin, to: end, bucketSeconds: bucketMs / 1000 }, signal);
  return { ...load, from };
}

export function LoadPage() {
  const zone = shownZone(null);
  const [chosen, setChosen] = useState<Bar | null>(null);
  const day = usePoll('day', (signal) => countFrom(MINUTE_MS, 24, signal), { everyMs: EVERY_MS });
  const week = usePoll('week', (signal) => countFrom(HOUR_MS, WEEK_HOURS, signal), { everyMs: EVERY_MS });
  return (
    <div class="stack">
      <h1>Load</h1>
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

function Herds({ items, onChoose }: { items: Load['items']; onChoose: (bar: Bar) => void }) {
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
