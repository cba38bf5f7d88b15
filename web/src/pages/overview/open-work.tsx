import { durationText } from '../../parts/time.tsx';

const COUNTS = [
  ['Active schedules', 'firelock_schedules{status="active"}'],
  ['Paused schedules', 'firelock_schedules{status="paused"}'],
  ['Schedules that cannot be planned', 'firelock_schedules{status="error"}'],
  ['Late schedules', 'firelock_schedules_late'],
  ['Overdue schedules', 'firelock_schedules_overdue'],
  ['Pending runs', 'firelock_runs_open{status="pending"}'],
  ['Running runs', 'firelock_runs_open{status="running"}'],
  ['Waiting runs', 'firelock_runs_open{status="waiting"}'],
  ['Effects pending', 'firelock_effects_pending'],
  ['Handoffs of this instance under way', 'firelock_in_flight_handoffs'],
] as const;

const OLDEST = 'firelock_oldest_pending_seconds';

/** What this instance has counted last, some seconds ago: nothing is counted for this page. */
export function OpenWork({ gauges }: { gauges: ReadonlyMap<string, number> }) {
  const known = COUNTS.flatMap(([name, gauge]) => {
    const value = gauges.get(gauge);
    return value === undefined ? [] : [[name, value] as const];
  });
  const oldest = gauges.get(OLDEST);
  return (
    <section class="card">
      <h2>Work</h2>
      <dl class="facts">
        {known.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value.toLocaleString('en')}</dd>
          </div>
        ))}
        {oldest !== undefined && (
          <div>
            <dt>Oldest pending run is due since</dt>
            <dd>{oldest === 0 ? '–' : durationText(oldest * 1000)}</dd>
          </div>
        )}
      </dl>
    </section>
  );
}
