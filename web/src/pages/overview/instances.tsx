import { get } from '../../api/http.ts';
import type { Instance, ListInstancesResponse } from '../../../../client/src/generated/types.gen.ts';
import { Badge } from '../../parts/badge.tsx';
import { Loaded } from '../../parts/states.tsx';
import { type Column, Table } from '../../parts/lists/table.tsx';
import { Ago } from '../../parts/time.tsx';
import { usePoll } from '../../state/poll.ts';

const DEAD_SHOWN = 5;

const columns: readonly Column<Instance>[] = [
  {
    head: 'Host',
    kind: 'grow',
    cell: ({ id, host, version, zoneData }) => (
      <span title={id}>
        <span class="user">{host}</span>
        <div class="quiet">
          {version}, zone data {zoneData}
        </div>
      </span>
    ),
  },
  {
    head: 'Lease',
    cell: ({ alive, heartbeatAt }) => (
      <>
        <Badge status={alive ? 'alive' : 'dead'} />
        <div class="quiet">
          <Ago at={heartbeatAt} />
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
          const dead = items.filter(({ alive }) => !alive);
          const shown = [...items.filter(({ alive }) => alive), ...dead.slice(0, DEAD_SHOWN)];
          return (
            <>
              <Table label="Instances" columns={columns} rows={shown} keyOf={({ id }) => id} />
              {dead.length > DEAD_SHOWN && (
                <p class="quiet more">and {dead.length - DEAD_SHOWN} more that have gone within a day</p>
              )}
            </>
          );
        }}
      </Loaded>
    </section>
  );
}
