import { get } from '../../api/http.ts';
import type { ListSchedulesResponse, Load } from '../../api/generated/types.gen.ts';
import { Dialog } from '../../parts/forms/dialog.tsx';
import { ScheduleLink } from '../../parts/links.tsx';
import { Loaded } from '../../parts/states.tsx';
import { Time } from '../../parts/time.tsx';
import { usePoll } from '../../state/poll.ts';
import { timeText } from '../../state/zone.ts';
import { type Bar, herdsOf } from './counts.ts';

const LOOKED_AT = 500;
const SHOWN = 50;
const EVERY_MS = 300_000;

/** What fires within a period: its busiest seconds, and the schedules that are found to fire then. */
export function Herd({
  bar: { from, to, fires },
  zone,
  onClose,
}: {
  bar: Bar;
  zone: string;
  onClose: () => void;
}) {
  const period = { from: new Date(from).toISOString(), to: new Date(to).toISOString() };
  const seconds = usePoll(
    `seconds ${from}`,
    (signal) => get<Load>('/load', { ...period, bucketSeconds: 1 }, signal),
    { everyMs: EVERY_MS },
  );
  const active = usePoll(
    'next fires',
    (signal) => get<ListSchedulesResponse>('/schedules', { status: 'active', limit: LOOKED_AT }, signal),
    { everyMs: EVERY_MS },
  );
  return (
    <Dialog title={`${fires.toLocaleString('en')} fires from ${timeText(from, zone)}`} onClose={onClose}>
      <h3>Busiest seconds</h3>
      <Loaded from={seconds}>
        {({ items, busiest }) => (
          <ul class="sample">
            {(herdsOf(items).length > 0 ? herdsOf(items) : busiest ? [busiest] : []).map((second) => (
              <li key={second.at}>
                {second.fires.toLocaleString('en')} at <Time at={second.at} />
              </li>
            ))}
          </ul>
        )}
      </Loaded>
      <h3>Schedules whose next fire is then</h3>
      <Loaded from={active}>
        {({ items, nextCursor }) => <Behind items={items} from={from} to={to} isAll={nextCursor === null} />}
      </Loaded>
    </Dialog>
  );
}

interface BehindProps {
  items: ListSchedulesResponse['items'];
  from: number;
  to: number;
  isAll: boolean;
}

function Behind({ items, from, to, isAll }: BehindProps) {
  const then = items.filter(({ nextFireAt }) => {
    const at = Date.parse(nextFireAt ?? '');
    return at >= from && at < to;
  });
  return (
    <>
      <ul class="sample">
        {then.slice(0, SHOWN).map(({ id }) => (
          <li key={id}>
            <ScheduleLink id={id} />
          </li>
        ))}
        {then.length > SHOWN && <li>and {then.length - SHOWN} more</li>}
      </ul>
      <p class="quiet">
        {then.length === 0 && 'None is found. '}
        {!isAll && `Only the first ${LOOKED_AT} active schedules were looked at. `}
        Schedules that fire then, but earlier too, are not listed.
      </p>
    </>
  );
}
