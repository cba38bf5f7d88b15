import { call } from '../../api/http.ts';
import type { Notifier, TestNotifierResponse } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { ALERT_KINDS } from '../../parts/alerts/alert-kinds.ts';
import { Below, NotifierLink } from '../../parts/links.tsx';
import type { Column } from '../../parts/lists/table.tsx';
import { NamedPage } from '../../parts/named/named-page.tsx';
import { durationText } from '../../parts/time.tsx';
import { useAct } from '../../state/act.ts';
import { goTo, href } from '../../state/route.ts';
import { NotifierForm } from './notifier-form.tsx';

/** Who is told what. */
export function Notifiers() {
  return (
    <NamedPage<Notifier>
      noun="notifier"
      about="A notifier tells a chat, PagerDuty, a mailbox or a URL once when something breaks, and once when it is well again."
      note={({ enabled }) => !enabled && <div class="quiet">not enabled</div>}
      actions={({ id }) => <Test id={id} />}
      {...{ columns: COLUMNS, Form: NotifierForm }}
    />
  );
}

const COLUMNS: readonly Column<Notifier>[] = [
  {
    head: 'Tells of',
    cell: ({ on }) => (on.length === ALERT_KINDS.length ? 'everything' : on.join(', ')),
  },
  { head: 'Of schedules', cell: ({ filter }) => <Filter filter={filter} /> },
  { head: 'Where', kind: 'grow', cell: ({ channel }) => <Where channel={channel} /> },
  {
    head: 'Reminds',
    kind: 'minor',
    cell: ({ remindSeconds }) => (remindSeconds === null ? 'never' : `after ${durationText(remindSeconds * 1000)}`),
  },
  {
    head: 'Fallback',
    kind: 'minor',
    cell: ({ fallback }) => (fallback === null ? <span class="quiet">–</span> : <NotifierLink id={fallback} />),
  },
];

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
