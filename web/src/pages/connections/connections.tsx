import { useState } from 'preact/hooks';
import { get } from '../../api/http.ts';
import type {
  Connection,
  ListConnectionsResponse,
  SecretFile,
} from '../../../../client/src/generated/types.gen.ts';
import { FilterBar, TextFilter } from '../../parts/lists/filter-bar.tsx';
import { Pager } from '../../parts/lists/pager.tsx';
import { type Column, Table } from '../../parts/lists/table.tsx';
import { Empty, Loaded } from '../../parts/states.tsx';
import { Time } from '../../parts/time.tsx';
import { usePoll } from '../../state/poll.ts';
import { place } from '../../state/route.ts';
import { may } from '../../state/session.ts';
import { ConnectionForm } from './connection-form.tsx';

export function Connections() {
  const [edited, setEdited] = useState<Connection | 'new' | null>(null);
  const { query } = place.value;
  const asked = { q: query.get('q'), cursor: query.get('cursor') };
  const list = usePoll(
    `connections ${JSON.stringify(asked)}`,
    (signal) => get<ListConnectionsResponse>('/connections', asked, signal),
    { keep: true },
  );
  return (
    <>
      <div class="bar">
        <h1>Connections</h1>
        {may('admin') && (
          <button type="button" onClick={() => setEdited('new')}>
            New connection…
          </button>
        )}
      </div>
      <FilterBar name="connections">
        <TextFilter name="q" label="Id or description" />
      </FilterBar>
      <Loaded from={list}>
        {({ items, nextCursor }) =>
          items.length === 0 ? (
            <Empty
              title={asked.q === null ? 'There are no connections' : 'No connection matches this filter'}
            >
              <p class="quiet">
                A connection says where a system is and how to log in to it, for all targets that name it.
              </p>
            </Empty>
          ) : (
            <>
              <Table
                label="Connections"
                columns={columnsFor(setEdited)}
                rows={items}
                keyOf={({ id }) => id}
              />
              <Pager nextCursor={nextCursor} first="First page" />
            </>
          )
        }
      </Loaded>
      {edited !== null && (
        <ConnectionForm
          existing={edited === 'new' ? null : edited}
          onDone={list.refresh}
          onClose={() => setEdited(null)}
        />
      )}
    </>
  );
}

function columnsFor(onEdit: (connection: Connection) => void): readonly Column<Connection>[] {
  return [
    {
      head: 'Connection',
      cell: ({ id, description }) => (
        <>
          <span class="user">{id}</span>
          {description !== null && <div class="user quiet clip">{description}</div>}
        </>
      ),
    },
    { head: 'URL', cell: ({ url }) => <span class="user">{url}</span> },
    { head: 'Logs in', cell: ({ auth }) => <LogIn auth={auth} /> },
    { head: 'Sends and checks', cell: (connection) => <More connection={connection} /> },
    { head: 'Version', kind: 'number', cell: ({ version }) => version },
    { head: 'Changed', kind: 'minor', cell: ({ updatedAt }) => <Time at={updatedAt} /> },
    ...(may('admin')
      ? [
          {
            head: <span class="unseen">Actions</span>,
            cell: (connection: Connection) => (
              <button type="button" aria-label={`Edit ${connection.id}`} onClick={() => onEdit(connection)}>
                Edit…
              </button>
            ),
          },
        ]
      : []),
  ];
}

function LogIn({ auth }: Pick<Connection, 'auth'>) {
  switch (auth?.type) {
    case undefined:
      return <span class="quiet">not at all</span>;
    case 'bearer':
      return <>by a token{fromFile(auth.token)}</>;
    case 'basic':
      return (
        <>
          as <span class="user">{auth.username}</span>
          {fromFile(auth.password)}
        </>
      );
    case 'oauth2':
      return (
        <>
          as <span class="user">{auth.clientId}</span>
          {fromFile(auth.clientSecret)}, by a token of <span class="user">{auth.tokenUrl}</span>
        </>
      );
  }
}

/** The names of its headers, and which certificates it has. */
function More({ connection: { headers, tls } }: { connection: Connection }) {
  const certificates = [
    ['authorities', tls?.ca],
    ['client certificate', tls?.cert],
    ['private key', tls?.key],
  ] as const;
  const parts = [
    ...Object.entries(headers),
    ...certificates.flatMap(([name, value]) =>
      value === null || value === undefined ? [] : [[name, value] as const],
    ),
  ];
  return (
    <>
      {parts.map(([name, value]) => (
        <span key={name} class="label user">
          {name}
          {fromFile(value)}
        </span>
      ))}
    </>
  );
}

function fromFile(value: string | SecretFile): string {
  return typeof value === 'string' ? '' : ` (file ${value.file})`;
}
