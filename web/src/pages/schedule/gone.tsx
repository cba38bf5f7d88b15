import { Empty } from '../../parts/states.tsx';
import { href } from '../../state/route.ts';
import { Versions } from './versions.tsx';

/** No schedule has this id. If one had it, its versions and runs are readable still, and it can be brought back. */
export function Gone({ id, onDone }: { id: string; onDone: () => void }) {
  return (
    <div class="stack">
      <h1 class="user">{id}</h1>
      <Empty title="There is no such schedule">
        <p>It was deleted, or never made.</p>
        <p>
          <a href={href('/schedules')}>All schedules</a> ·{' '}
          <a href={href('/runs', { scheduleId: id })}>Its runs</a>
        </p>
      </Empty>
      <Versions id={id} current={null} onDone={onDone} />
    </div>
  );
}
