import type { Connection } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { HttpFields } from '../../parts/endpoint/http-fields.tsx';
import type { Sent } from '../../parts/endpoint/sent.ts';
import { AreaField, TextField } from '../../parts/forms/draft-fields.tsx';
import { Segments } from '../../parts/forms/segments.tsx';
import type { Part } from './inputs.tsx';

const BODIES = [
  ['envelope', "firelock's own JSON about the run"],
  ['payload', 'the payload, byte for byte'],
  ['template', 'a text of my own'],
] as const;

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
      {sent ? (
        <HttpFields {...{ part, sent, connections, bodies: BODIES }}>
          <PayloadField part={part} />
        </HttpFields>
      ) : draft.targetType === 'pull' ? (
        <PullFields part={part} />
      ) : null}
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
