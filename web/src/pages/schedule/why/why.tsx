import { useState } from 'preact/hooks';
import type { Schedule } from '../../../../../clients/typescript/src/generated/types.gen.ts';
import { Loaded as WhenLoaded } from '../../../parts/states.tsx';
import { Segments } from '../../../parts/forms/segments.tsx';
import { place, setQuery } from '../../../state/route.ts';
import { dayText, shownZone, timeText } from '../../../state/zone.ts';
import { Legend } from './cells.tsx';
import { type Loaded, useOccurrences } from './occurrences.ts';
import { OUTCOMES } from './outcome.ts';
import { type Period, VIEWS, type View, periodAt, viewFor } from './period.ts';
import { Strip } from './strip.tsx';

/** At first: 20 calls, and 20 more whenever somebody asks to go on. */
const PAGES_STEP = 20;

interface Props {
  schedule: Schedule;
  /** How often it fires; null: it is not known. */
  everyMs: number | null;
  /** Of what was done here; see useOccurrences. */
  asOf: string;
}

/** What became of each occurrence of an hour, a day or a month. Which one, the address says. */
export function Why({ schedule, everyMs, asOf }: Props) {
  const zone = shownZone(schedule.timezone);
  const asked = place.value.query;
  const view = VIEWS.find((one) => one === asked.get('view')) ?? viewFor(everyMs);
  const [opened, setOpened] = useState(() => beginOf(schedule));
  const at = Date.parse(asked.get('at') ?? '') || opened;
  const period = periodAt(view, at, zone);
  const show = (shown: View, moment: number | null) => {
    setQuery({ view: shown, at: moment === null ? null : new Date(moment).toISOString() });
  };
  return (
    <section class="card why" aria-labelledby="why">
      <h2 id="why">Why did it not run?</h2>
      <div class="bar">
        <Segments
          label="Period"
          value={view}
          options={VIEWS.map((one) => [one, one] as const)}
          onChange={(one) => {
            show(one, at);
          }}
        />
        <button type="button" aria-label="Earlier" onClick={() => show(view, period.from - 1)}>
          ←
        </button>
        <strong>{titleOf(period, zone)}</strong>
        <button type="button" aria-label="Later" onClick={() => show(view, period.to)}>
          →
        </button>
        <button
          type="button"
          class="plain"
          onClick={() => {
            setOpened(Date.now());
            show(view, null);
          }}
        >
          Now
        </button>
      </div>
      <Shown key={`${schedule.id} ${period.from} ${period.to}`} {...{ schedule, period, zone, asOf }} onOpen={show} />
    </section>
  );
}

/** What fires no more is looked at where it fired last. */
function beginOf({ at, status, lastFireAt }: Schedule): number {
  return Date.parse(at ?? (status === 'ended' ? lastFireAt : null) ?? '') || Date.now();
}

interface ShownProps {
  schedule: Schedule;
  period: Period;
  zone: string;
  asOf: string;
  onOpen: (view: View, at: number) => void;
}

function Shown({ schedule, period, zone, asOf, onOpen }: ShownProps) {
  const [pages, setPages] = useState(PAGES_STEP);
  const loaded = useOccurrences(schedule.id, period, { mostPages: pages, asOf });
  return (
    <WhenLoaded from={loaded}>
      {(data) => (
        <>
          {data.items.length === 0 && <p class="quiet">No fire of this schedule is due in this {period.view}.</p>}
          {(data.items.length > 0 || period.view === 'month') && (
            <Strip {...{ schedule, period, zone, onOpen }} items={data.items} />
          )}
          <Legend counts={countsOf(data)} />
          {data.through !== null && (
            <p class="warning">
              It fires so often that only what was due up to {timeText(data.through, zone)} is shown.{' '}
              <button
                type="button"
                onClick={() => {
                  setPages(pages + PAGES_STEP);
                }}
              >
                Go on
              </button>
            </p>
          )}
          {data.unplannable.map(({ version, from, error }) => (
            <p key={`${version} ${from}`} class="warning">
              From {timeText(from, zone)} on, version {version} could not be planned: <span class="user">{error}</span>
            </p>
          ))}
        </>
      )}
    </WhenLoaded>
  );
}

function countsOf({ items }: Loaded) {
  return OUTCOMES.map((outcome) => [outcome, items.filter((item) => item.outcome === outcome).length] as const).filter(
    ([, count]) => count > 0,
  );
}

function titleOf({ view, from }: Period, zone: string): string {
  if (view === 'hour') return timeText(from, zone).replace(':00 ', ' ');
  const day = dayText(from, zone);
  return `${view === 'day' ? day : day.slice(0, 7)} (${zone})`;
}
