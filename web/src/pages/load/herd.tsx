import { Dialog } from '../../parts/forms/dialog.tsx';
import { ScheduleLink } from '../../parts/links.tsx';
import { Loaded } from '../../parts/states.tsx';
import { Time } from '../../parts/time.tsx';
import { timeText } from '../../state/zone.ts';
import { useCount } from './counting.ts';
import { type Bar, herdsOf } from './counts.ts';

const SHOWN = 50;

interface Props {
  bar: Bar;
  zone: string;
  onClose: () => void;
}

/** What fires within a period: its busiest seconds, and the schedules that fire most. */
export function Herd({ bar: { from, to, fires }, zone, onClose }: Props) {
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
                    <ScheduleLink id={id} />{' '}
                    {own > 1 && <span class="quiet">{own.toLocaleString('en')} times</span>}
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
