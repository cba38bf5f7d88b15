import { useState } from 'preact/hooks';
import { Loaded } from '../../parts/states.tsx';
import { Time } from '../../parts/time.tsx';
import { clockText, dayText, shownZone, timeText } from '../../state/zone.ts';
import { type Counted, useCount } from './counting.ts';
import { type Bar, type Day, barsOf, daysOf, herdsOf } from './counts.ts';
import './load.css';
import { Dialog } from '../../parts/forms/dialog.tsx';
import { ScheduleLink } from '../../parts/links.tsx';

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
              {data.schedules.toLocaleString('en')} schedules are counted so far, for the {index ? 'week' : 'day'}…
            </p>
          ),
      )}
      <section class="card">
        <h2>The next 24 hours, by the quarter of an hour ({zone})</h2>
        <Loaded from={day}>
          {({ items, from }) => <Bars bars={barsOf(items, from, 24, BAR_MS)} zone={zone} onChoose={setChosen} />}
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

const STEP = 10;
const HEIGHT = 150;
const TICK_EVERY = 12;

interface BarsProps {
  bars: readonly Bar[];
  zone: string;
  onChoose: (bar: Bar) => void;
}

/** The next day; a click on a bar shows what is behind it. Who uses the keyboard finds the same under the herds. */
function Bars({ bars, zone, onChoose }: BarsProps) {
  const most = Math.max(1, ...bars.map(({ fires }) => fires));
  const width = bars.length * STEP;
  return (
    <>
      <svg
        class="bars"
        viewBox={`0 0 ${width} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`Fires of the next 24 hours, up to ${most.toLocaleString('en')} in 15 minutes`}
      >
        {bars.map((bar, index) => {
          // What is little next to a herd is seen all the same.
          const height = bar.fires === 0 ? 0 : Math.max(2, (HEIGHT * bar.fires) / most);
          return (
            <g key={bar.from} onClick={() => onChoose(bar)}>
              <rect class="behind" x={index * STEP} y={0} width={STEP} height={HEIGHT} />
              <rect x={index * STEP + 1} y={HEIGHT - height} width={STEP - 2} height={height} />
              <title>{`${timeText(bar.from, zone)}: ${bar.fires.toLocaleString('en')} fires`}</title>
            </g>
          );
        })}
      </svg>
      <div class="ticks quiet" aria-hidden="true">
        {bars
          .filter((_, index) => index % TICK_EVERY === 0)
          .map(({ from }) => (
            <span key={from}>{clockText(from, zone)}</span>
          ))}
      </div>
    </>
  );
}

const SHOWN = 50;

interface HerdProps {
  bar: Bar;
  zone: string;
  onClose: () => void;
}

/** What fires within a period: its busiest seconds, and the schedules that fire most. */
function Herd({ bar: { from, to, fires }, zone, onClose }: HerdProps) {
  const counted = useCount('', () => ({ from, to, bucketSeconds: 1, top: SHOWN }));
  return (
    <Dialog title={`${fires.toLocaleString('en')} fires from ${timeText(from, zone)}`} onClose={onClose}>
      <Loaded from={counted}>
        {({ items, firing, schedules, isPart }) => {
          const herds = herdsOf(items);
          const busiest = items.toSorted((a, b) => b.fires - a.fires).slice(0, 1);
          return (
            <>
              {isPart && (
                <p class="quiet" role="status">
                  {schedules.toLocaleString('en')} schedules are counted so far…
                </p>
              )}
              <h3>Busiest seconds</h3>
              <ul class="sample">
                {(herds.length > 0 ? herds : busiest).map((second) => (
                  <li key={second.at}>
                    {second.fires.toLocaleString('en')} at <Time at={second.at} />
                  </li>
                ))}
              </ul>
              <h3>Schedules that fire then</h3>
              <ul class="sample">
                {firing.map(({ id, fires: own }) => (
                  <li key={id}>
                    <ScheduleLink id={id} /> {own > 1 && <span class="quiet">{own.toLocaleString('en')} times</span>}
                  </li>
                ))}
              </ul>
              {firing.length === SHOWN && <p class="quiet">Those that fire most, {SHOWN} at most.</p>}
            </>
          );
        }}
      </Loaded>
    </Dialog>
  );
}

const CELL = 30;
const LEFT = 90;
const TOP = 20;

/** A row for each day, a column for each hour: the more fires, the stronger. */
function Week({ days, zone }: { days: readonly Day[]; zone: string }) {
  const most = Math.max(1, ...days.flatMap(({ hours }) => hours.map((fires) => fires ?? 0)));
  const [width, height] = [LEFT + 24 * CELL, TOP + days.length * CELL];
  return (
    <div class="week" tabIndex={0} role="region" aria-label={`Fires by day and hour, ${zone}`}>
      <svg viewBox={`0 0 ${width} ${height}`} role="img" aria-label={saidOf(days, most)}>
        {Array.from({ length: 24 }, (_, hour) => (
          <text key={hour} x={LEFT + (hour + 0.5) * CELL} y={TOP - 6} text-anchor="middle">
            {hour}
          </text>
        ))}
        {days.map(({ day, hours }, row) => (
          <g key={day}>
            <text x={0} y={TOP + (row + 0.65) * CELL}>
              {day}
            </text>
            {hours.map((fires, hour) =>
              fires === null ? null : (
                <rect
                  key={hour}
                  x={LEFT + hour * CELL}
                  y={TOP + row * CELL}
                  width={CELL - 2}
                  height={CELL - 2}
                  rx={3}
                  fill-opacity={fires === 0 ? 0.06 : 0.15 + 0.85 * Math.sqrt(fires / most)}
                >
                  <title>{`${day} ${hour}:00 ${zone}: ${fires.toLocaleString('en')} fires`}</title>
                </rect>
              ),
            )}
          </g>
        ))}
      </svg>
    </div>
  );
}

function saidOf(days: readonly Day[], most: number): string {
  const busiest = days.find(({ hours }) => hours.includes(most));
  if (!busiest) return 'Nothing fires this week';
  return `The busiest hour is ${busiest.day} ${busiest.hours.indexOf(most)}:00, with ${most} fires`;
}
