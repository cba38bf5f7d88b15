import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';
import type { Connection } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { AreaField, SelectField, TextField } from '../forms/draft-fields.tsx';
import { Pairs } from '../forms/pairs.tsx';
import { ConnectionField } from './connection-field.tsx';
import { type EndpointDraft, linesOf } from './endpoint-draft.ts';
import { type HttpPart, KEPT } from './http-part.ts';
import { OutcomeFields } from './outcome-fields.tsx';
import type { Sent } from './sent.ts';
import { BODY_PLACEHOLDERS } from '../../../../src/core/http/body-template.ts';
import { SecretPairs } from '../forms/secret-pairs.tsx';

/** Of its fields. */
export const HTTP_PATHS: readonly string[] = [
  ...['/target/connection', '/target/url', '/target/method', '/target/headers', '/target/secret'],
  ...[
    '/target/lookup',
    '/target/cancel',
    '/target/body',
    '/target/body/secrets',
    '/target/outcome/succeed',
    '/target/outcome/retry',
  ],
  ...['/target/outcome/fail', '/target/outcome/require', '/target/outcome/otherwise'],
];
const METHODS = ['POST', 'PUT', 'PATCH', 'DELETE', 'GET', 'HEAD'].map((method) => [method, method] as const);

/** A new one below the first: receivers take both until they know the new one. */
function withNew(secret: string): string {
  const random = crypto.getRandomValues(new Uint8Array(32));
  return [...linesOf(secret).slice(0, 1), `whsec_${btoa(String.fromCharCode(...random))}`].join('\n');
}

interface Props {
  part: HttpPart;
  sent: Sent;
  /** Those that can be chosen. */
  connections: readonly Connection[];
  /** What can be chosen as its body; empty: nothing. */
  bodies: readonly (readonly [kind: EndpointDraft['bodyKind'], text: string])[];
  /** Fields of what goes with the body. */
  children?: ComponentChildren;
}

/** Where it is called, with what, and what its answers mean. */
export function HttpFields({ part, sent, connections, bodies, children }: Props) {
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
      {children}
      {bodies.length > 0 && <BodyFields {...{ part, bodies }} />}
      <WhatIsSent sent={sent} />
      <SecretField part={part} />
      <OutcomeFields part={part} />
      <OtherCalls part={part} />
    </>
  );
}

function SecretField({ part }: { part: HttpPart }) {
  const { draft, change } = part;
  return (
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
  );
}

function OtherCalls({ part }: { part: HttpPart }) {
  const { draft } = part;
  return (
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
  );
}

const SHOWN = 20_000;

/** The request of the next run, as it would be sent. */
function WhatIsSent({ sent: { method, url, headers, own, body, unknown } }: { sent: Sent }) {
  return (
    <section class="field" aria-labelledby="what-is-sent">
      <h3 id="what-is-sent">What is sent</h3>
      <pre class="user sent" aria-label="The request" tabIndex={0}>
        {[`${method} ${url}`, ...headers.map(([name, value]) => `${name}: ${value}`)].join('\n')}
        {body !== null && `\n\n${body.slice(0, SHOWN)}`}
      </pre>
      <div class="note">
        {unknown !== null && <p class="fault">{unknown}</p>}
        {unknown === null && body === null && <p>No body: a {method} carries none.</p>}
        {body === '' && <p>The body is empty.</p>}
        {body !== null && body.length > SHOWN && <p>and {body.length - SHOWN} more characters.</p>}
        <p>
          For the first attempt of a sample run; firelock adds <span class="mono">{own.join(', ')}</span>.
        </p>
      </div>
    </section>
  );
}

const TYPES = ['application/json', 'application/x-www-form-urlencoded', 'text/plain', 'application/xml'];

interface BodyProps {
  part: HttpPart;
  /** What each kind of body is. */
  bodies: readonly (readonly [kind: EndpointDraft['bodyKind'], text: string])[];
}

/** What a request carries. */
function BodyFields({ part, bodies }: BodyProps) {
  const { bodyKind } = part.draft;
  const types = useId();
  return (
    <>
      <SelectField
        {...{ part, path: '/target/body', name: 'bodyKind', options: bodies }}
        label="Body"
        hint="Below is what comes of it. A GET and a HEAD carry none."
      />
      {bodyKind === 'template' && (
        <>
          <TextField
            {...{ part, path: '/target/body/contentType', name: 'contentType', list: types, isMono: true }}
            label="Content type"
            hint="How values are written follows from it. Empty: application/json."
          />
          <datalist id={types}>
            {TYPES.map((type) => (
              <option key={type} value={type} />
            ))}
          </datalist>
          <AreaField
            {...{ part, path: '/target/body/template', name: 'template', rows: 8 }}
            label="Text"
            hint={
              <>
                Filled in: <span class="mono">{BODY_PLACEHOLDERS}</span>, where … is a JSON pointer. In JSON, one inside
                quotes becomes text, and one outside of them a value. Whoever may read this sees the text: a secret has
                its place below.
              </>
            }
          />
          <SecretPairs
            label="Secret values of the text"
            hint={`{{secret/NAME}} stands for one. ${KEPT}`}
            path="/target/body/secrets"
            draft={part.draft.bodySecrets}
            faults={part.faults}
            onChange={(bodySecrets) => part.change({ bodySecrets })}
          />
        </>
      )}
    </>
  );
}
