import { get } from '../../api/http.ts';
import type { Instance, ListInstancesResponse } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { Badge } from '../../parts/badge.tsx';
import { Loaded } from '../../parts/states.tsx';
import { type Column, Table } from '../../parts/lists/table.tsx';
import { Ago } from '../../parts/time.tsx';
import { usePoll } from '../../state/poll.ts';

const GONE_SHOWN = 5;

const columns: readonly Column<Instance>[] = [
  {
    head: 'Host',
    kind: 'grow',
    cell: ({ id, host, port, version, zoneData }) => (
      <span title={id}>
        <span class="user">{port === null ? host : `${host}:${port}`}</span>
        <div class="quiet">
          {version}, zone data {zoneData}
        </div>
      </span>
    ),
  },
  {
    head: 'Lease',
    cell: ({ alive, leftAt, heartbeatAt }) => (
      <>
        <Badge status={alive ? 'alive' : leftAt === null ? 'dead' : 'left'} />
        <div class="quiet">
          <Ago at={leftAt ?? heartbeatAt} />
        </div>
      </>
    ),
  },
  { head: 'Started', cell: ({ startedAt }) => <Ago at={startedAt} /> },
  { head: 'Runs', kind: 'number', cell: ({ inFlight }) => inFlight },
];

/** Who works on this database; those that are gone stay in sight for a day, the last of them here. */
export function Instances() {
  const instances = usePoll('instances', (signal) => get<ListInstancesResponse>('/instances', {}, signal));
  return (
    <section class="card">
      <h2>Instances</h2>
      <Loaded from={instances}>
        {({ items }) => {
          const gone = items.filter(({ alive }) => !alive);
          const shown = [...items.filter(({ alive }) => alive), ...gone.slice(0, GONE_SHOWN)];
          return (
            <>
              <Table label="Instances" columns={columns} rows={shown} keyOf={({ id }) => id} />
              {gone.length > GONE_SHOWN && (
                <p class="quiet more">and {gone.length - GONE_SHOWN} more that have gone within a day</p>
              )}
            </>
          );
        }}
      </Loaded>
    </section>
  );
}
