import { get } from '../../api/http.ts';
import type {
  Limit,
  ListLimitsResponse,
  ListQueuesResponse,
  Queue,
} from '../../../../clients/typescript/src/generated/types.gen.ts';
import { type Column, Table } from '../../parts/lists/table.tsx';
import { durationText } from '../../parts/time.tsx';
import { usePoll } from '../../state/poll.ts';

const SHOWN = 10;

const queueColumns: readonly Column<Queue>[] = [
  { head: 'Queue', kind: 'grow', cell: ({ queue }) => <span class="user">{queue}</span> },
  { head: 'Pending', kind: 'number', cell: ({ pending }) => pending },
  { head: 'Running', kind: 'number', cell: ({ running }) => running },
  {
    head: 'Oldest',
    kind: 'number',
    cell: ({ pending, oldestPendingSeconds }) =>
      pending === 0 ? '–' : durationText(oldestPendingSeconds * 1000),
  },
  { head: 'Workers', kind: 'number', cell: ({ workers }) => workers },
];

/** Where workers pull; absent while no run uses one. */
export function Queues() {
  const { data } = usePoll('queues', (signal) => get<ListQueuesResponse>('/queues', {}, signal));
  if (!data || data.items.length === 0) return null;
  const most = data.items.toSorted((a, b) => b.oldestPendingSeconds - a.oldestPendingSeconds).slice(0, SHOWN);
  return (
    <section class="card">
      <h2>Queues</h2>
      <Table label="Queues" columns={queueColumns} rows={most} keyOf={({ queue }) => queue} />
    </section>
  );
}

const limitColumns: readonly Column<Limit>[] = [
  { head: 'Limit', kind: 'grow', cell: ({ id }) => <span class="user">{id}</span> },
  { head: 'Running', kind: 'number', cell: ({ running, maxRunning }) => `${running} of ${maxRunning}` },
  { head: 'Waiting', kind: 'number', cell: ({ waiting }) => waiting },
];

/** How many of what may run at once; absent while none is used. */
export function Limits() {
  const { data } = usePoll('limits', (signal) =>
    get<ListLimitsResponse>('/limits', { limit: SHOWN }, signal),
  );
  if (!data || data.items.length === 0) return null;
  return (
    <section class="card">
      <h2>Limits</h2>
      <Table label="Limits" columns={limitColumns} rows={data.items} keyOf={({ id }) => id} />
    </section>
  );
}
