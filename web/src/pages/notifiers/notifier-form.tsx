import { useState } from 'preact/hooks';
import type { Notifier } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { ApiProblem, type Fault } from '../../api/http.ts';
import { ALERT_KINDS } from '../../parts/alerts/alert-kinds.ts';
import { useConnections } from '../../parts/endpoint/connection-field.tsx';
import { HTTP_PATHS } from '../../parts/endpoint/http-fields.tsx';
import { DefineDialog, type Named } from '../../parts/named/define-dialog.tsx';
import type { FormProps } from '../../parts/named/named-page.tsx';
import { AreaField, TextField } from '../../parts/forms/draft-fields.tsx';
import { Field } from '../../parts/forms/field.tsx';
import { ChannelFields, type Part } from './channel-fields.tsx';
import { EMPTY, bodyOf, draftOf, faultsOf, inForm } from './notifier-draft.ts';
import { mailOf, sentOf } from './sample-message.ts';

const KIND: Named = {
  noun: 'notifier',
  hint: 'Messages that are recorded from now on go where it says.',
};
const PATHS = [
  ...['/enabled', '/on', '/filter/ids', '/filter/label', '/remindSeconds', '/afterFailures', '/fallback'],
  ...['/channel/type', '/channel/to', '/channel/routingKey'],
  ...HTTP_PATHS.map((path) => `/channel${path}`),
  ...HTTP_PATHS,
];

export function NotifierForm({ existing, onDone, onClose }: FormProps<Notifier>) {
  const [draft, setDraft] = useState(existing === null ? EMPTY : draftOf(existing));
  const [at] = useState(Date.now);
  const connections = useConnections(draft);
  const read = (): Record<string, unknown> => {
    const found = faultsOf(draft);
    if (found.length > 0) throw new ApiProblem(400, 'Nothing is sent', found);
    return bodyOf(draft, existing);
  };
  const chosen = connections.find(({ id }) => id === draft.connection.trim()) ?? null;
  const id = existing?.id ?? 'this-notifier';
  const preview =
    draft.channel === 'email' ? mailOf(draft, id, at) : { sent: sentOf(draft, id, at, chosen), connections };
  return (
    <DefineDialog {...{ kind: KIND, existing, paths: PATHS, read, onDone, onClose }}>
      {(faults) => {
        const ofSample: readonly Fault[] = 'sent' in preview ? preview.sent.faults : [];
        const part: Part = {
          draft,
          faults: distinct([...faults.map(inForm), ...ofSample]),
          change: (changes) => setDraft({ ...draft, ...changes }),
        };
        return (
          <>
            <Enabled part={part} />
            <WhatFields part={part} />
            <ChannelFields {...{ part, preview }} />
            <HowOften part={part} />
          </>
        );
      }}
    </DefineDialog>
  );
}

function Enabled({ part: { draft, change } }: { part: Part }) {
  return (
    <div class="field">
      <label>
        <input
          type="checkbox"
          checked={draft.enabled}
          onChange={({ currentTarget: { checked } }) => change({ enabled: checked })}
        />{' '}
        Enabled: one that is not is told nothing
      </label>
    </div>
  );
}

/** Of what, and of which schedules. */
function WhatFields({ part }: { part: Part }) {
  const { draft, faults, change } = part;
  const toggled = (kind: string, isOn: boolean) =>
    ALERT_KINDS.flatMap(([one]) => ((one === kind ? isOn : draft.on.includes(one)) ? [one] : []));
  return (
    <>
      <Field label="It tells of" path="/on" faults={faults}>
        {(props) => (
          <div {...props} class="kinds" role="group" aria-label="It tells of">
            {ALERT_KINDS.map(([kind, meaning]) => (
              <label key={kind}>
                <input
                  type="checkbox"
                  checked={draft.on.includes(kind)}
                  onChange={({ currentTarget: { checked } }) => change({ on: toggled(kind, checked) })}
                />{' '}
                {kind} <span class="quiet">{meaning}</span>
              </label>
            ))}
          </div>
        )}
      </Field>
      <AreaField
        {...{ part, path: '/filter/ids', name: 'ids', rows: 2 }}
        label="Of schedules with these ids"
        hint="One a line; billing.* stands for all that begin so. Empty: of all."
      />
      <AreaField
        {...{ part, path: '/filter/label', name: 'labels', rows: 2 }}
        label="And with all of these labels"
        hint="One a line, as team:billing. Empty: with any."
      />
    </>
  );
}

function HowOften({ part }: { part: Part }) {
  return (
    <>
      <TextField
        {...{ part, path: '/afterFailures', name: 'afterFailures', type: 'number' }}
        label="Tells of failed after so many runs in a row"
        hint="1: with the first that fails. The recovery is told only if the failure was."
      />
      <TextField
        {...{ part, path: '/remindSeconds', name: 'remindSeconds', type: 'number' }}
        label="Reminds after so many seconds"
        hint="And again and again while it stays open. 86400 is a day. Empty: never."
      />
      <TextField
        {...{ part, path: '/fallback', name: 'fallback' }}
        label="Fallback"
        hint="The id of the notifier that gets what could not be delivered. Empty: none does."
      />
    </>
  );
}

/** What is wrong with a template, the sample and the daemon may both say. */
function distinct(faults: readonly Fault[]): Fault[] {
  return [...new Map(faults.map((fault) => [`${fault.path} ${fault.message}`, fault])).values()];
}
