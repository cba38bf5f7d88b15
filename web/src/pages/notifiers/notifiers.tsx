import { useState } from 'preact/hooks';
import { call, get } from '../../api/http.ts';
import type {
  ListNotifiersResponse,
  Notifier,
  TestNotifierResponse,
} from '../../../../client/src/generated/types.gen.ts';
import { ALERT_KINDS } from '../../parts/alerts/alert-kinds.ts';
import { Below, NotifierLink } from '../../parts/links.tsx';
import { FilterBar, TextFilter } from '../../parts/lists/filter-bar.tsx';
import { Pager } from '../../parts/lists/pager.tsx';
import { type Column, Table } from '../../parts/lists/table.tsx';
import { Empty, Loaded } from '../../parts/states.tsx';
import { durationText } from '../../parts/time.tsx';
import { useAct } from '../../state/act.ts';
import { usePoll } from '../../state/poll.ts';
import { goTo, href, place } from '../../state/route.ts';
import { may } from '../../state/session.ts';
import { NotifierForm } from './notifier-form.tsx';

/** Who is told what. */
export function Notifiers() {
  const [edited, setEdited] = useState<Notifier | 'new' | null>(null);
  const { query } = place.value;
  const asked = { q: query.get('q'), cursor: query.get('cursor') };
  const list = usePoll(
    `notifiers ${JSON.stringify(asked)}`,
    (signal) => get<ListNotifiersResponse>('/notifiers', asked, signal),
    { keep: true },
  );
  return (
    <>
      <div class="bar">
        <h1>Notifiers</h1>
        {may('admin') && (
          <button type="button" onClick={() => setEdited('new')}>
            New notifier…
          </button>
        )}
      </div>
      <FilterBar name="notifiers">
        <TextFilter name="q" label="Id or description" />
      </FilterBar>
      <Loaded from={list}>
        {({ items, nextCursor }) =>
          items.length === 0 ? (
            <Empty title={asked.q === null ? 'There are no notifiers' : 'No notifier matches this filter'}>
              <p class="quiet">
                A notifier tells a chat, PagerDuty, a mailbox or a URL once when something breaks, and once
                when it is well again.
              </p>
            </Empty>
          ) : (
            <>
              <Table
                label="Notifiers"
                columns={may('admin') ? [...COLUMNS, actions(setEdited)] : COLUMNS}
                rows={items}
                keyOf={({ id }) => id}
              />
              <Pager nextCursor={nextCursor} first="First page" />
            </>
          )
        }
      </Loaded>
      {edited !== null && (
        <NotifierForm
          existing={edited === 'new' ? null : edited}
          onDone={list.refresh}
          onClose={() => setEdited(null)}
        />
      )}
    </>
  );
}

const COLUMNS: readonly Column<Notifier>[] = [
  {
    head: 'Notifier',
    cell: ({ id, description, enabled }) => (
      <>
        <span class="user">{id}</span>
        {!enabled && <div class="quiet">not enabled</div>}
        {description !== null && <div class="user quiet clip">{description}</div>}
      </>
    ),
  },
  {
    head: 'Tells of',
    cell: ({ on }) => (on.length === ALERT_KINDS.length ? 'everything' : on.join(', ')),
  },
  { head: 'Of schedules', cell: ({ filter }) => <Filter filter={filter} /> },
  { head: 'Where', kind: 'grow', cell: ({ channel }) => <Where channel={channel} /> },
  {
    head: 'Reminds',
    kind: 'minor',
    cell: ({ remindSeconds }) =>
      remindSeconds === null ? 'never' : `after ${durationText(remindSeconds * 1000)}`,
  },
  {
    head: 'Fallback',
    kind: 'minor',
    cell: ({ fallback }) =>
      fallback === null ? <span class="quiet">–</span> : <NotifierLink id={fallback} />,
  },
];

function actions(onEdit: (notifier: Notifier) => void): Column<Notifier> {
  return {
    head: <span class="unseen">Actions</span>,
    cell: (notifier) => (
      <div class="bar">
        <Test id={notifier.id} />
        <button type="button" aria-label={`Edit ${notifier.id}`} onClick={() => onEdit(notifier)}>
          Edit…
        </button>
      </div>
    ),
  };
}

/** Sends a message at once, and shows what becomes of it. */
function Test({ id }: { id: string }) {
  const { act, isBusy } = useAct();
  const test = async (): Promise<string> => {
    const run = await call<TestNotifierResponse>('POST', `/notifiers/${encodeURIComponent(id)}/test`);
    goTo(href(`/runs/${run.id}`));
    return `${id} is tested: this is the run of its message.`;
  };
  return (
    <button type="button" aria-label={`Test ${id}`} disabled={isBusy} onClick={() => void act(test)}>
      Test
    </button>
  );
}

function Filter({ filter: { ids, label } }: Pick<Notifier, 'filter'>) {
  const all = [...ids, ...label];
  if (all.length === 0) return <span class="quiet">all</span>;
  return (
    <>
      {all.map((one) => (
        <span key={one} class="label user">
          {one}
        </span>
      ))}
    </>
  );
}

function Where({ channel }: Pick<Notifier, 'channel'>) {
  if (channel.type === 'email')
    return (
      <>
        mail to <span class="user">{channel.to.join(', ')}</span>
      </>
    );
  const { connection, url } = channel.target;
  return (
    <>
      {channel.type}: <Below connection={connection} />
      <span class="user">{url}</span>
    </>
  );
}
