import { useState } from 'preact/hooks';
import type { Schedule } from '../../../../../clients/typescript/src/generated/types.gen.ts';
import { weekdayOf } from '../../../state/local-time.ts';
import { clockText, dayText, timeText } from '../../../state/zone.ts';
import { type Cell, Cells } from './cells.tsx';
import { type Bucket, type Told, WORDS, areWithinAMinute, countsText, fold } from './outcome.ts';
import { Panel } from './panel.tsx';
import { type Period, type View, bucketEdges, dayEdges, fits } from './period.ts';
import { whyText } from './words.ts';

interface Props {
  schedule: Schedule;
  period: Period;
  zone: string;
  items: readonly Told[];
  /** To look closer. */
  onOpen: (view: View, at: number) => void;
}

/** A cell for each occurrence; or, where these are many, for each few minutes; or, of a month, for each day. */
export function Strip({ schedule, period, zone, items, onOpen }: Props) {
  const [chosen, setChosen] = useState<string | null>(null);
  const kind = period.view === 'month' ? 'month' : fits(items.length) ? 'one' : 'bar';
  const buckets = bucketsOf(kind, items, period, zone);
  const hasSeconds = areWithinAMinute(buckets);
  const shown = buckets.find(({ from }) => String(from) === chosen);
  const closer: View | null = kind === 'month' ? 'day' : kind === 'bar' && period.view === 'day' ? 'hour' : null;
  return (
    <>
      {kind === 'month' && <Weekdays />}
      <Cells
        kind={kind}
        label={`Occurrences, ${kind === 'one' ? 'each' : kind === 'bar' ? 'by minutes' : 'by day'}, in ${zone}`}
        chosen={chosen}
        onChoose={(key) => setChosen(key === chosen ? null : key)}
        cells={buckets.map((bucket, index) =>
          cellOf(bucket, { kind, zone, hasSeconds, schedule, isFirst: index === 0 }),
        )}
      />
      {kind === 'bar' && <Axis {...{ period, zone }} />}
      {shown && shown.items.length > 0 && <Panel bucket={shown} schedule={schedule} />}
      {shown && closer && (
        <p>
          <button type="button" onClick={() => onOpen(closer, shown.from)}>
            Look at this {closer}
          </button>
        </p>
      )}
      {!shown && items.length > 0 && <p class="quiet">Choose one to see what became of it, and why.</p>}
    </>
  );
}

type Kind = 'one' | 'bar' | 'month';

function bucketsOf(kind: Kind, items: readonly Told[], period: Period, zone: string): Bucket[] {
  if (kind === 'bar') return fold(items, bucketEdges(period));
  if (kind === 'month') return fold(items, dayEdges(period, zone));
  // Two schedules that had this id one after the other may have been due at one moment.
  const moments = [...new Set(items.map(({ fireAt }) => Date.parse(fireAt)))];
  return fold(items, [...moments, period.to]).map((bucket) => ({ ...bucket, to: bucket.from + 1 }));
}

interface Around {
  kind: Kind;
  zone: string;
  hasSeconds: boolean;
  schedule: Schedule;
  isFirst: boolean;
}

function cellOf(bucket: Bucket, { kind, zone, hasSeconds, schedule, isFirst }: Around): Cell {
  const [only] = bucket.items;
  const cell = { key: String(bucket.from), outcome: bucket.worst };
  if (kind === 'one' && only) {
    const name = `${timeText(only.fireAt, zone)}: ${WORDS[only.outcome]}. ${whyText(only, schedule)}`;
    return { ...cell, name, text: clockText(only.fireAt, zone, hasSeconds) };
  }
  const day = dayText(bucket.from, zone);
  if (kind === 'month') {
    const text = String(Number(day.slice(8)));
    const name = `${text} (${day}): ${countsText(bucket.counts)}`;
    return {
      ...cell,
      name,
      text,
      column: isFirst ? weekdayOf(day) : undefined,
    };
  }
  return { ...cell, name: `${timeText(bucket.from, zone)}: ${countsText(bucket.counts)}` };
}

function Weekdays() {
  return (
    <div class="cells month" aria-hidden="true">
      {['Mo', 'Tu', 'We', 'Th', 'Fr', 'Sa', 'Su'].map((day) => (
        <span key={day} class="quiet">
          {day}
        </span>
      ))}
    </div>
  );
}

function Axis({ period: { from, to }, zone }: { period: Period; zone: string }) {
  const quarters = [0, 0.25, 0.5, 0.75].map((part) => from + part * (to - from));
  return (
    <div class="axis quiet" aria-hidden="true">
      {quarters.map((at) => (
        <span key={at}>{clockText(at, zone)}</span>
      ))}
      <span>{clockText(to, zone)}</span>
    </div>
  );
}
