import type { ListSchedulesResponse } from '../../../clients/typescript/src/generated/types.gen.ts';
import { goTo, href } from '../state/route.ts';
import { shownZone, timeText } from '../state/zone.ts';
import { toneOf } from './badge.tsx';
import { underWaySince } from './under-way.ts';

type RecentRun = NonNullable<ListSchedulesResponse['items'][number]['recentRuns']>[number];

const STEP = 9;
const HEIGHT = 20;

/**
 * The last runs of a schedule, oldest first, each with the colour of what became of it. A click leads to a run; who uses the
 * keyboard finds the same runs on the schedule's page.
 */
export function RunStrip({ runs, zone, room }: { runs: readonly RecentRun[]; zone: string | null; room: number }) {
  const shown = runs.slice(0, room).reverse();
  if (shown.length === 0) return <span class="quiet">no runs yet</span>;
  const width = room * STEP;
  return (
    <svg class="strip" width={width} height={HEIGHT} viewBox={`0 0 ${width} ${HEIGHT}`} role="img">
      <title>{`The last ${shown.length} runs: ${summaryOf(shown)}`}</title>
      {shown.map((run, index) => (
        <rect
          key={run.id}
          onClick={() => {
            goTo(href(`/runs/${run.id}`));
          }}
          class={toneOf(run.status)}
          x={(room - shown.length + index) * STEP}
          y={run.status === 'succeeded' ? 4 : 0}
          width={STEP - 2}
          height={run.status === 'succeeded' ? HEIGHT - 4 : HEIGHT}
          rx={2}
        >
          <title>{textOf(run, shownZone(zone))}</title>
        </rect>
      ))}
    </svg>
  );
}

function textOf(run: RecentRun, zone: string): string {
  const since = underWaySince(run);
  const underWay = since === null ? '' : `, under way since ${timeText(since, zone)}`;
  return `${timeText(run.scheduledFor, zone)}: ${run.status}${underWay}`;
}

function summaryOf(runs: readonly RecentRun[]): string {
  const counts = new Map<string, number>();
  for (const { status } of runs) counts.set(status, (counts.get(status) ?? 0) + 1);
  return [...counts].map(([status, count]) => `${count} ${status}`).join(', ');
}
