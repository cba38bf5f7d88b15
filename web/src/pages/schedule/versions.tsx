import { useState } from 'preact/hooks';
import { get } from '../../api/http.ts';
import type {
  ListVersionsResponse,
  Schedule,
  ScheduleVersion,
} from '../../../../clients/typescript/src/generated/types.gen.ts';
import { differencesOf } from '../../parts/differences/difference.ts';
import { Differences } from '../../parts/differences/differences.tsx';
import { Table } from '../../parts/lists/table.tsx';
import { Time } from '../../parts/time.tsx';
import { usePoll } from '../../state/poll.ts';
import { may } from '../../state/session.ts';
import { callPath } from '../../state/schedule-paths.ts';
import { RevertDialog } from './revert.tsx';

const FIRST = 10;
const MOST = 500;

interface Props {
  id: string;
  /** Null: it is deleted. */
  current: Schedule | null;
  onDone: () => void;
}

interface Row extends ScheduleVersion {
  /** The one before it; null: it is not loaded, or there is none. */
  before: ScheduleVersion | null;
}

/** Who changed it when, and what; and the way back. */
export function Versions({ id, current, onDone }: Props) {
  const [limit, setLimit] = useState(FIRST);
  const [reverting, setReverting] = useState<ScheduleVersion | null>(null);
  const versions = usePoll(
    `versions ${id} ${limit} ${current?.version}`,
    // One more, to tell what the last one shown has changed.
    (signal) => get<ListVersionsResponse>(callPath(id, '/versions'), { limit: Math.min(MOST, limit + 1) }, signal),
    { everyMs: 30_000, keep: true },
  );
  if (!versions.data) return null;
  const { items, nextCursor } = versions.data;
  const rows = items.slice(0, limit).map((item, index) => ({ ...item, before: items[index + 1] ?? null }));
  return (
    <section class="card versions">
      <h2>Versions</h2>
      <Table
        label="Versions"
        rows={rows}
        keyOf={({ version, at }) => `${version} ${at}`}
        columns={[
          { head: 'Version', kind: 'number', cell: ({ version }) => version },
          { head: 'When', cell: ({ at, schedule }) => <Time at={at} zone={schedule.timezone} relative /> },
          { head: 'By', cell: ({ by }) => <span class="user">{by ?? '–'}</span> },
          { head: 'What', kind: 'grow', cell: (row) => <Change row={row} /> },
          {
            head: <span class="unseen">Action</span>,
            cell: (row) =>
              may('admin') &&
              isOther(row, current) && (
                <button type="button" onClick={() => setReverting(row)}>
                  {current ? 'Revert…' : 'Bring back…'}
                </button>
              ),
          },
        ]}
      />
      {(nextCursor !== null || items.length > limit) && limit < MOST && (
        <div class="actions">
          <button type="button" onClick={() => setLimit(limit === FIRST ? 100 : MOST)}>
            Show more
          </button>
        </div>
      )}
      {reverting && (
        <RevertDialog
          {...{ id, current, onDone }}
          to={reverting}
          onClose={() => {
            setReverting(null);
          }}
        />
      )}
    </section>
  );
}

function isOther({ schedule }: ScheduleVersion, current: Schedule | null): boolean {
  return current === null || differencesOf(current, schedule).length > 0;
}

function Change({ row: { change, before, schedule, version } }: { row: Row }) {
  if (change !== 'updated' || before === null) return <>{change}</>;
  const differences = differencesOf(before.schedule, schedule);
  if (differences.length === 0) return <>updated: what is not shown, such as the value of a header</>;
  return (
    <details>
      <summary>
        <span class="user">{differences.map(({ path }) => path.slice(1)).join(', ')}</span>
      </summary>
      <Differences label={`What version ${version} changed`} differences={differences} />
    </details>
  );
}
