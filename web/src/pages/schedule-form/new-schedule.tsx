import { useState } from 'preact/hooks';
import { call, get } from '../../api/http.ts';
import type { ListVersionsResponse } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { Copy } from '../../parts/copy.tsx';
import { Loaded, Refusal } from '../../parts/states.tsx';
import { useAct } from '../../state/act.ts';
import { usePoll } from '../../state/poll.ts';
import { goTo, href, place } from '../../state/route.ts';
import { may, me } from '../../state/session.ts';
import { callPath, pagePath } from '../../state/schedule-paths.ts';
import { type Draft, EMPTY, type Stored, draftOf } from './draft.ts';
import { ScheduleForm } from './form.tsx';
import { TARGET_COMMAND, TEMPLATES, type Template } from './templates.ts';

/** What lies behind does not change. */
const ONCE = { everyMs: 86_400_000 };
const CREATE_ONLY = { 'if-none-match': '*' };

/** A new schedule: from a template, or from a version of one that was deleted. */
export function NewSchedule() {
  const of = place.value.query.get('of');
  const version = Number(place.value.query.get('version'));
  if (me.value === null) return null;
  if (!may('admin')) return <Refusal text="Your role may look at schedules, but not make any." />;
  return of === null ? <FromTemplate /> : <FromVersion id={of} version={version} />;
}

function FromTemplate() {
  const [chosen, setChosen] = useState<Template | null>(null);
  return (
    <div class="stack">
      <h1>New schedule</h1>
      <div class="templates">
        {TEMPLATES.map((template) => (
          <button
            key={template.title}
            type="button"
            aria-pressed={template === chosen}
            onClick={() => setChosen(template)}
          >
            <b>{template.title}</b>
            <span class="quiet">{template.text}</span>
          </button>
        ))}
      </div>
      {chosen?.draft.url === TEMPLATES[0]?.draft.url && (
        <p class="warning">
          Nothing listens at this URL yet? In a terminal, this does: <Copy text={() => TARGET_COMMAND}>Copy</Copy>
          <code class="user command">{TARGET_COMMAND}</code>
        </p>
      )}
      <Making key={chosen?.title ?? ''} first={chosen?.draft ?? EMPTY} base={null} />
    </div>
  );
}

function FromVersion({ id, version }: { id: string; version: number }) {
  const versions = usePoll(
    `versions ${id}`,
    (signal) => get<ListVersionsResponse>(callPath(id, '/versions'), { limit: 500 }, signal),
    ONCE,
  );
  return (
    <div class="stack">
      <h1>Bring back {id}</h1>
      <Loaded from={versions}>
        {({ items }) => {
          const found = items.find((item) => item.version === version)?.schedule;
          if (!found) return <Refusal text={`There is no version ${version} among the last 500.`} />;
          return <Making first={draftOf(found)} base={found} />;
        }}
      </Loaded>
    </div>
  );
}

function Making({ first, base }: { first: Draft; base: Stored | null }) {
  const [draft, setDraft] = useState(first);
  const saving = useAct({ quietly: true });
  const create = async (body: Record<string, unknown>): Promise<void> => {
    // Without an id any path does: the daemon says what is wrong with the one in the body.
    const isDone = await saving.act(async () => {
      await call('PUT', callPath(draft.id || 'new'), { body, headers: CREATE_ONLY });
      return `${draft.id} is created.`;
    });
    if (isDone) goTo(href(pagePath(draft.id)));
  };
  return (
    <ScheduleForm
      {...{ draft, base, saving }}
      isNew
      headers={CREATE_ONLY}
      onChange={setDraft}
      onSave={(body) => void create(body)}
    />
  );
}
