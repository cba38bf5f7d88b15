import { get } from '../../api/http.ts';
import type { AuditEntry, ListAuditAnswer } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { FilterBar, OneOf, TextFilter } from '../../parts/lists/filter-bar.tsx';
import { Pager } from '../../parts/lists/pager.tsx';
import { Empty, Loaded } from '../../parts/states.tsx';
import { type Column, Table } from '../../parts/lists/table.tsx';
import { Time } from '../../parts/time.tsx';
import { usePoll } from '../../state/poll.ts';
import { href, place } from '../../state/route.ts';
import { may } from '../../state/session.ts';

const ACTIONS: readonly (readonly [string, string])[] = [
  ['', 'Any action'],
  ...[
    ...['create', 'update', 'delete', 'fire', 'backfill', 'skip', 'unskip'].map((act) => `schedule.${act}`),
    ...['create', 'cancel', 'retry', 'complete'].map((act) => `run.${act}`),
    ...['schedules.bulk', 'runs.bulk', 'calendar.put', 'calendar.delete', 'limit.put', 'limit.delete'],
    ...['connection.put', 'connection.delete', 'notifier.put', 'notifier.delete', 'notifier.test'],
    ...['maintenance.on', 'maintenance.off', 'installation.take-over'],
  ].map((action) => [action, action] as const),
];

const columns: readonly Column<AuditEntry>[] = [
  { head: 'When', cell: ({ at }) => <Time at={at} /> },
  {
    head: 'Who',
    cell: ({ by, role }) => (
      <>
        {by === null ? <span class="quiet">not asked</span> : <span class="user">{by}</span>}
        <div class="quiet">{role}</div>
      </>
    ),
  },
  {
    head: 'What',
    cell: ({ action, outcome }) => (
      <>
        {action ?? 'a call'}
        {outcome === 'refused' && <div class="bad">refused</div>}
      </>
    ),
  },
  { head: 'Of what', cell: (entry) => <Subject entry={entry} /> },
  {
    head: 'More',
    kind: 'grow',
    cell: ({ detail }) => {
      const text = Object.entries(detail).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
      return (
        <span class="user quiet clip" title={text.join('\n')}>
          {text.join(', ')}
        </span>
      );
    },
  },
];

function Subject({ entry: { action, subject } }: { entry: AuditEntry }) {
  if (subject === null) return null;
  const folder = action?.startsWith('schedule.') ? 'schedules' : action?.startsWith('run.') ? 'runs' : null;
  if (folder === null) return <span class="user">{subject}</span>;
  return (
    <a class="user" href={href(`/${folder}/${encodeURIComponent(subject)}`)}>
      {subject}
    </a>
  );
}

/** Who did what, and who was refused. */
export function Audit() {
  return (
    <>
      <div class="bar">
        <h1>Audit</h1>
      </div>
      {may('operator') ? <Entries /> : <p>Your role may not read the audit: operators and admins may.</p>}
    </>
  );
}

function Entries() {
  const { query } = place.value;
  const names = ['by', 'action', 'scheduleId', 'cursor'] as const;
  const asked = Object.fromEntries(names.map((name) => [name, query.get(name)]));
  const list = usePoll(`audit ${JSON.stringify(asked)}`, (signal) => get<ListAuditAnswer>('/audit', asked, signal), {
    keep: true,
  });
  return (
    <>
      <FilterBar name="audit">
        <TextFilter name="by" label="Who" width={14} />
        <OneOf name="action" label="Action" options={ACTIONS} />
        <TextFilter name="scheduleId" label="Schedule's id" />
      </FilterBar>
      <Loaded from={list}>
        {({ items, nextCursor }) =>
          items.length === 0 ? (
            <Empty title="Nothing is recorded here" />
          ) : (
            <>
              <Table
                label="Audit"
                columns={columns}
                rows={items}
                keyOf={(entry) => JSON.stringify(entry)}
                isStale={list.isStale}
              />
              <Pager nextCursor={nextCursor} first="Newest" />
            </>
          )
        }
      </Loaded>
    </>
  );
}
