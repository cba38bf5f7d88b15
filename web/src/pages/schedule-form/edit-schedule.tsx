import { useState } from 'preact/hooks';
import { ApiProblem, call, get } from '../../api/http.ts';
import type { ListVersionsResponse, Schedule } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { Loaded, Refusal } from '../../parts/states.tsx';
import { useAct } from '../../state/act.ts';
import { usePoll } from '../../state/poll.ts';
import { goTo, href, place } from '../../state/route.ts';
import { may, me } from '../../state/session.ts';
import { callPath, pagePath } from '../../state/schedule-paths.ts';
import { type Draft, draftOf, rebase } from './draft.ts';
import { ScheduleForm } from './form.tsx';
import type { PageProps } from '../page-props.ts';
import { differencesOf } from '../../parts/differences/difference.ts';
import { Differences } from '../../parts/differences/differences.tsx';

/** Asked once: what others do meanwhile, the daemon says when the change is sent. */
const ONCE = { everyMs: 86_400_000 };

interface Opened {
  schedule: Schedule;
  draft: Draft;
}

/** A change of a schedule; `?version=3`: to what it was then. */
export function EditSchedule({ params: { id = '' } }: PageProps) {
  const version = Number(place.value.query.get('version') ?? 0);
  const opened = usePoll(`edit ${id} ${version}`, (signal) => open(id, version, signal), ONCE);
  if (me.value === null) return null;
  if (!may('admin')) return <Refusal text="Your role may look at schedules, but not change any." />;
  return (
    <div class="stack">
      <h1>
        Edit{' '}
        <a class="user" href={href(pagePath(id))}>
          {id}
        </a>
      </h1>
      <Loaded from={opened}>{(data) => <Editing key={version} opened={data} />}</Loaded>
    </div>
  );
}

async function open(id: string, version: number, signal: AbortSignal): Promise<Opened> {
  const schedule = await get<Schedule>(callPath(id), {}, signal);
  if (version === 0) return { schedule, draft: draftOf(schedule) };
  const { items } = await get<ListVersionsResponse>(callPath(id, '/versions'), { limit: 500 }, signal);
  const found = items.find((item) => item.version === version);
  return { schedule, draft: draftOf(found?.schedule ?? schedule) };
}

function Editing({ opened }: { opened: Opened }) {
  const [base, setBase] = useState(opened.schedule);
  const [draft, setDraft] = useState(opened.draft);
  const [theirs, setTheirs] = useState<Schedule | null>(null);
  const saving = useAct({ quietly: true });
  const { id } = base;
  const headers = { 'if-match': `"${base.version}"` };
  const save = async (body: Record<string, unknown>): Promise<void> => {
    const isDone = await saving.act(async () => {
      try {
        await call('PUT', callPath(id), { body, headers });
      } catch (error) {
        if (error instanceof ApiProblem && error.status === 412) setTheirs(await get<Schedule>(callPath(id)));
        throw error;
      }
      return `${id} is saved.`;
    });
    if (isDone) goTo(href(pagePath(id)));
  };
  const goOn = (next: Draft): void => {
    if (theirs) setBase(theirs);
    setDraft(next);
    setTheirs(null);
    // Nothing is sent: what was said of the last try goes.
    void saving.act(() => Promise.resolve(null));
  };
  return (
    <ScheduleForm
      {...{ draft, base, headers, saving }}
      isNew={false}
      onChange={setDraft}
      onSave={(body) => void save(body)}
    >
      {theirs && (
        <ChangedMeanwhile
          base={base}
          theirs={theirs}
          onKeepBoth={() => goOn(rebase(draft, draftOf(base), draftOf(theirs)))}
          onTakeTheirs={() => goOn(draftOf(theirs))}
        />
      )}
    </ScheduleForm>
  );
}

interface Props {
  /** What was opened. */
  base: Schedule;
  /** What somebody else has made of it. */
  theirs: Schedule;
  onKeepBoth: () => void;
  onTakeTheirs: () => void;
}

/** Nothing was saved, since it would have undone what somebody else has saved: what that is, and how to go on. */
function ChangedMeanwhile({ base, theirs, onKeepBoth, onTakeTheirs }: Props) {
  return (
    <section class="card" role="alert">
      <h2>Somebody has changed it meanwhile</h2>
      <p class="field">
        You opened version {base.version}; it is version {theirs.version} now. Nothing of yours is saved yet.
      </p>
      <Differences
        label="What was changed meanwhile"
        differences={differencesOf(base, theirs)}
        heads={['When you opened it', 'Now']}
      />
      <div class="actions">
        <button type="button" onClick={onTakeTheirs}>
          Discard my changes
        </button>
        <button type="button" class="main" onClick={onKeepBoth}>
          Put my changes on top
        </button>
      </div>
    </section>
  );
}
