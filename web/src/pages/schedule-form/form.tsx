import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { Fault } from '../../api/http.ts';
import { Copy } from '../../parts/copy.tsx';
import { useConnections } from '../../parts/endpoint/connection-field.tsx';
import { HTTP_PATHS } from '../../parts/endpoint/http-fields.tsx';
import { TextField } from '../../parts/forms/draft-fields.tsx';
import { OtherFaults } from '../../parts/forms/field.tsx';
import { Refusal } from '../../parts/states.tsx';
import { BASE_PATH } from '../../state/base.ts';
import { scope, token } from '../../state/session.ts';
import { curlText } from './curl.ts';
import { type Draft, type Stored, bodyOf, faultsOf } from './draft.ts';
import type { Part } from './inputs.tsx';
import { POLICY_PATHS } from './policies.ts';
import { PolicyFields } from './policy-fields.tsx';
import { Preview, type Previewed, PreviewedMonth, usePreview } from './preview.tsx';
import { sentOf } from './sample.ts';
import './schedule-form.css';
import { TargetFields } from './target-fields.tsx';
import { TriggerFields } from './trigger-fields.tsx';

const PATHS = [
  ...['/id', '/description', '/timezone', '/startAt', '/endAt', '/exclude/dates', '/exclude/calendars'],
  ...['/exclude/weekdays', '/onExcluded', '/every', '/pick'],
  ...['/target/queue', ...HTTP_PATHS],
  ...['/payload', '/labels', ...POLICY_PATHS],
];
const OF_KIND = { cron: ['/cron'], everySeconds: ['/everySeconds'], at: ['/at'], after: ['/after'] };

interface Props {
  draft: Draft;
  onChange: (draft: Draft) => void;
  /** What it was made of; null: of nothing. */
  base: Stored | null;
  isNew: boolean;
  /** Of the PUT. */
  headers: Readonly<Record<string, string>>;
  saving: { isBusy: boolean; faults: readonly Fault[]; refusal: string | null };
  onSave: (body: Record<string, unknown>) => void;
  children?: ComponentChildren;
}

/** Everything that a schedule says. What the daemon finds wrong is beside the field that it is about. */
export function ScheduleForm({ draft, onChange, base, isNew, headers, saving, onSave, children }: Props) {
  const [local, setLocal] = useState<readonly Fault[]>([]);
  const previewed = usePreview(draft);
  const connections = useConnections(draft);
  const chosen = connections.find(({ id }) => id === draft.connection.trim()) ?? null;
  const sent = draft.targetType === 'http' ? sentOf(draft, base, sampleTime(draft, previewed), chosen) : null;
  const faults = distinct([...local, ...saving.faults, ...previewed.faults, ...(sent?.faults ?? [])]);
  const change = (changes: Partial<Draft>) => {
    setLocal([]);
    onChange({ ...draft, ...changes });
  };
  const part: Part = { draft, faults, change };
  const save = (): void => {
    const found = faultsOf(draft);
    setLocal(found);
    if (found.length === 0) onSave(bodyOf(draft, base));
  };
  return (
    <form
      class="schedule-form"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        save();
      }}
    >
      <div>
        {isNew && (
          <TextField
            {...{ part, path: '/id', name: 'id' }}
            label="Id"
            hint={`Letters, digits, dots, dashes and underscores${beginning()}. It cannot be changed later.`}
          />
        )}
        <TriggerFields part={part} />
        <TargetFields {...{ part, sent, connections }} />
        <PolicyFields part={part} />
      </div>
      <div class="beside">
        <Preview draft={draft} previewed={previewed} />
        <PreviewedMonth draft={draft} previewed={previewed} />
        {children}
        {saving.refusal !== null && (
          <Refusal
            text={
              saving.faults.length > 0 ? 'Nothing is saved: what is wrong is said beside the fields.' : saving.refusal
            }
          />
        )}
        <OtherFaults faults={faults} paths={[...PATHS, ...OF_KIND[draft.kind]]} />
        <div class="actions">
          <Copy text={() => curlOf(draft, base, headers)}>Copy as curl</Copy>
          <button type="submit" class="main" disabled={saving.isBusy}>
            {isNew ? 'Create' : 'Save'}
          </button>
        </div>
      </div>
    </form>
  );
}

/** Its next fire, if that is known. */
function sampleTime({ kind, at }: Draft, { answer }: Previewed): number {
  const next = kind === 'at' ? at : answer?.items[0]?.fireAt;
  const time = Date.parse(next ?? '');
  return Number.isNaN(time) ? Date.now() : time;
}

function curlOf(draft: Draft, base: Stored | null, headers: Readonly<Record<string, string>>): string {
  const id = encodeURIComponent(draft.id);
  return curlText({
    url: `${location.origin}${BASE_PATH}/api/v1/schedules/${id}`,
    body: bodyOf(draft, base),
    headers,
    needsToken: token.value !== null,
  });
}

/** A preview and a save may say the same, and the id is both in the path and in the body. */
function distinct(faults: readonly Fault[]): Fault[] {
  const named = faults.map(({ path, message }) => ({ path: path === 'id' ? '/id' : path, message }));
  return [...new Map(named.map((fault) => [`${fault.path} ${fault.message}`, fault])).values()];
}

/** Of the ids that the caller may give. */
function beginning(): string {
  return scope.value === null ? '' : `, beginning with ${scope.value.join(' or ')}`;
}
