import type { Connection } from '../../../../client/src/generated/types.gen.ts';
import { Pairs } from '../../parts/forms/pairs.tsx';
import { Segments } from '../../parts/forms/segments.tsx';
import { BodyFields } from './endpoint/body-fields.tsx';
import { ConnectionField } from './endpoint/connection-field.tsx';
import { linesOf } from './endpoint/endpoint-draft.ts';
import { OutcomeFields } from './endpoint/outcome-fields.tsx';
import type { Sent } from './endpoint/sent.ts';
import { WhatIsSent } from './endpoint/what-is-sent.tsx';
import { AreaField, type Part, SelectField, TextField } from './inputs.tsx';

const METHODS = ['POST', 'PUT', 'PATCH', 'DELETE', 'GET', 'HEAD'].map((method) => [method, method] as const);
const KEPT = 'What is stored is never shown again: *** stands for it, and keeps it.';

/** A new one below the first: receivers take both until they know the new one. */
function withNew(secret: string): string {
  const random = crypto.getRandomValues(new Uint8Array(32));
  return [...linesOf(secret).slice(0, 1), `whsec_${btoa(String.fromCharCode(...random))}`].join('\n');
}

interface Props {
  part: Part;
  /** Null: nothing is called. */
  sent: Sent | null;
  /** Those that can be chosen. */
  connections: readonly Connection[];
}

/** What it calls, and with what. */
export function TargetFields({ part, sent, connections }: Props) {
  const { draft, change } = part;
  return (
    <fieldset>
      <legend>What</legend>
      <Segments
        label="Kind of target"
        value={draft.targetType}
        options={[
          ['http', 'Call a URL'],
          ['pull', 'Workers pull it'],
        ]}
        onChange={(targetType) => change({ targetType })}
      />
      {sent ? <HttpFields {...{ part, sent, connections }} /> : <PullFields part={part} />}
    </fieldset>
  );
}

function PullFields({ part }: { part: Part }) {
  return (
    <>
      <TextField
        {...{ part, path: '/target/queue', name: 'queue' }}
        label="Queue"
        hint="Nothing is called: a worker that asks for this queue gets the run."
      />
      <PayloadField part={part} />
    </>
  );
}

function PayloadField({ part }: { part: Part }) {
  return (
    <AreaField
      {...{ part, path: '/payload', name: 'payload', rows: 6 }}
      label="Payload"
      hint="Any JSON, handed over byte for byte: numbers keep their digits. Empty: none."
    />
  );
}

function HttpFields({ part, sent, connections }: Props & { sent: Sent }) {
  const { draft, change, faults } = part;
  return (
    <>
      <ConnectionField part={part} connections={connections} />
      <TextField
        {...{ part, path: '/target/url', name: 'url', isMono: true }}
        label={draft.connection.trim() === '' ? 'URL' : 'Path below the URL of the connection'}
        hint="{{runId}}, {{runName}}, {{scheduleId}}, {{scheduledFor}} and {{attempt}} are filled in."
      />
      <SelectField {...{ part, path: '/target/method', name: 'method', options: METHODS }} label="Method" />
      <Pairs
        label="Headers"
        hint={KEPT}
        path="/target/headers"
        words={['name', 'value']}
        pairs={draft.headers}
        faults={faults}
        onChange={(headers) => change({ headers })}
      />
      <PayloadField part={part} />
      <BodyFields part={part} />
      <WhatIsSent sent={sent} />
      <AreaField
        {...{ part, path: '/target/secret', name: 'secret', rows: 2 }}
        label="Signing secret"
        hint={
          <>
            Signs each request. Two, a line each, while the target changes from one to the other. {KEPT}{' '}
            <button type="button" onClick={() => change({ secret: withNew(draft.secret) })}>
              Make one
            </button>
          </>
        }
      />
      <OutcomeFields part={part} />
      <details open={draft.lookupUrl + draft.cancelUrl !== ''}>
        <summary>What to ask it when an answer is lost, and to tell it when a run is cancelled</summary>
        <TextField
          {...{ part, path: '/target/lookup', name: 'lookupUrl', type: 'url', isMono: true }}
          label="Look-up URL"
          hint="Asked before a call whose answer never came is repeated: 2xx means it arrived, 404 that it did not."
        />
        <TextField
          {...{ part, path: '/target/cancel', name: 'cancelUrl', type: 'url', isMono: true }}
          label="Cancel URL"
          hint="Called once when a running run is cancelled or replaced."
        />
      </details>
    </>
  );
}
