import { toneOf } from '../../parts/badge.tsx';
import { place, setQuery } from '../../state/route.ts';

const STATUSES = [
  'failed',
  'unknown',
  'abandoned',
  'pending',
  'running',
  'waiting',
  'succeeded',
  'skipped',
  'cancelled',
];

/** Which statuses to show; none chosen: all. */
export function StatusFilter() {
  const chosen = new Set(
    (place.value.query.get('status') ?? '').split(',').filter((status) => status !== ''),
  );
  return (
    <div class="toggles" role="group" aria-label="Statuses">
      {STATUSES.map((status) => (
        <button
          key={status}
          type="button"
          class={`badge ${toneOf(status)}`}
          aria-pressed={chosen.has(status)}
          onClick={() => {
            const changed = new Set(chosen);
            if (!changed.delete(status)) changed.add(status);
            setQuery({ status: [...changed].join(',') });
          }}
        >
          {status}
        </button>
      ))}
    </div>
  );
}
