import type { Run, Schedule } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { RunBadge } from '../../parts/badge.tsx';
import { RunLink } from '../../parts/links.tsx';
import { Loaded } from '../../parts/states.tsx';
import { Table } from '../../parts/lists/table.tsx';
import { Time, durationText } from '../../parts/time.tsx';
import type { Polled } from '../../state/poll.ts';
import { href } from '../../state/route.ts';
import { durationOf, isHeartbeat } from './figures.ts';

/** The last few runs, whatever started them. */
export function RecentRuns({ schedule, runs }: { schedule: Schedule; runs: Polled<{ items: Run[] }> }) {
  return (
    <section class="card">
      <h2>
        Last runs{' '}
        <a class="more" href={href('/runs', { scheduleId: schedule.id })}>
          all of them
        </a>
      </h2>
      <Loaded from={runs}>
        {({ items }) =>
          items.length === 0 ? <p class="quiet">There are no runs yet.</p> : <Runs schedule={schedule} runs={items} />
        }
      </Loaded>
    </section>
  );
}

function Runs({ schedule, runs }: { schedule: Schedule; runs: readonly Run[] }) {
  const { timezone } = schedule;
  const isBeat = isHeartbeat(schedule);
  return (
    <Table
      label="Last runs"
      rows={runs}
      keyOf={({ id }) => id}
      columns={[
        { head: 'Run', cell: ({ id }) => <RunLink id={id} /> },
        { head: 'Due at', cell: ({ scheduledFor }) => <Time at={scheduledFor} zone={timezone} /> },
        {
          head: 'Status',
          cell: (run) => <RunBadge {...{ run, isBeat }} zone={timezone} title={run.reason ?? undefined} />,
        },
        { head: 'Started by', kind: 'minor', cell: ({ trigger }) => trigger },
        { head: 'Late by', kind: 'number', cell: ({ latenessMs }) => durationText(latenessMs) },
        { head: 'Took', kind: 'number', cell: (run) => durationText(durationOf(run)) },
        {
          head: 'What it said',
          kind: 'grow',
          cell: ({ error, reason }) => <span class="user clip">{error?.message ?? reason ?? ''}</span>,
        },
      ]}
    />
  );
}
