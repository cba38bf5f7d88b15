import { useState } from 'preact/hooks';
import { ApiProblem, type Fault } from '../../api/http.ts';
import type { Connection } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { KEPT } from '../../parts/endpoint/http-part.ts';
import { DefineDialog, type Named } from '../../parts/named/define-dialog.tsx';
import type { FormProps } from '../../parts/named/named-page.tsx';
import { Field } from '../../parts/forms/field.tsx';
import { OF_FILES, SecretPairs } from '../../parts/forms/secret-pairs.tsx';
import { TextInput } from '../../parts/forms/text-input.tsx';
import { type ConnectionDraft, EMPTY, bodyOf, draftOf, faultsOf } from './connection-draft.ts';
import { CredentialField } from './credential-field.tsx';

const KIND: Named = {
  noun: 'connection',
  hint: 'Targets name it. A change is in force from the next attempt on, of open runs too.',
};
const AUTH = [
  ['', 'not at all'],
  ['bearer', 'bearer: a token'],
  ['basic', 'basic: a name and a password'],
  ['oauth2', 'oauth2: client credentials'],
] as const;
const PATHS = [
  ...['/url', '/headers', '/auth/token', '/auth/username', '/auth/password', '/auth/tokenUrl'],
  ...['/auth/clientId', '/auth/clientSecret', '/auth/scope', '/auth/audience'],
  ...['/tls/ca', '/tls/cert', '/tls/key'],
];

export function ConnectionForm({ existing, onDone, onClose }: FormProps<Connection>) {
  const [draft, setDraft] = useState(existing === null ? EMPTY : draftOf(existing));
  const read = (): Record<string, unknown> => {
    const found = faultsOf(draft);
    if (found.length > 0) throw new ApiProblem(400, 'Nothing is sent', found);
    return bodyOf(draft);
  };
  return (
    <DefineDialog {...{ kind: KIND, existing, paths: PATHS, read, onDone, onClose }}>
      {(faults) => {
        const part: Part = { draft, faults, change: (changes) => setDraft({ ...draft, ...changes }) };
        return (
          <>
            <Line
              {...{ part, name: 'url', path: '/url', label: 'URL' }}
              hint="An http or https origin, with or without a path. Targets name paths below it."
            />
            <HeaderFields part={part} />
            <AuthFields part={part} />
            <TlsFields part={part} />
          </>
        );
      }}
    </DefineDialog>
  );
}

/** What every part of the form is given. */
interface Part {
  draft: ConnectionDraft;
  faults: readonly Fault[];
  change: (changes: Partial<ConnectionDraft>) => void;
}

function HeaderFields({ part: { draft, faults, change } }: { part: Part }) {
  return (
    <SecretPairs
      label="Headers"
      hint={`Added to each request. ${KEPT}`}
      path="/headers"
      {...{ draft: draft.headers, faults }}
      onChange={(headers) => change({ headers })}
    />
  );
}

function AuthFields({ part }: { part: Part }) {
  const { draft, change } = part;
  return (
    <>
      <Field label="How it logs in">
        {(props) => (
          <select
            {...props}
            value={draft.authType}
            onChange={({ currentTarget }) => {
              change({ authType: currentTarget.value as ConnectionDraft['authType'] });
            }}
          >
            {AUTH.map(([value, text]) => (
              <option key={value} value={value}>
                {text}
              </option>
            ))}
          </select>
        )}
      </Field>
      {draft.authType === 'bearer' && <Secret {...{ part, name: 'token', path: '/auth/token', label: 'Token' }} />}
      {draft.authType === 'basic' && (
        <>
          <Line {...{ part, name: 'username', path: '/auth/username', label: 'User name' }} />
          <Secret {...{ part, name: 'password', path: '/auth/password', label: 'Password' }} />
        </>
      )}
      {draft.authType === 'oauth2' && <OAuthFields part={part} />}
    </>
  );
}

function OAuthFields({ part }: { part: Part }) {
  return (
    <>
      <Line
        {...{ part, name: 'tokenUrl', path: '/auth/tokenUrl', label: 'Token URL' }}
        hint="Where firelock fetches access tokens."
      />
      <Line {...{ part, name: 'clientId', path: '/auth/clientId', label: 'Client id' }} />
      <Secret {...{ part, name: 'clientSecret', path: '/auth/clientSecret', label: 'Client secret' }} />
      <Line
        {...{ part, name: 'scope', path: '/auth/scope', label: 'Scope' }}
        hint="Words with a space between them. Empty: none is asked for."
      />
      <Line {...{ part, name: 'audience', path: '/auth/audience', label: 'Audience' }} hint="Empty: none." />
    </>
  );
}

function TlsFields({ part }: { part: Part }) {
  const { ca, cert, key } = part.draft;
  return (
    <details open={[ca, cert, key].some(({ text, isFile }) => isFile || text !== '')}>
      <summary>Certificates</summary>
      <Secret
        {...{ part, name: 'ca', path: '/tls/ca', label: 'Authorities', rows: 4 }}
        hint="In PEM: who vouches for the server. Empty: the well-known ones."
      />
      <Secret
        {...{ part, name: 'cert', path: '/tls/cert', label: 'Client certificate', rows: 4 }}
        hint="In PEM: the own one first, then those between it and its root."
      />
      <Secret
        {...{ part, name: 'key', path: '/tls/key', label: 'Private key', rows: 4 }}
        hint={`In PEM, not encrypted: firelock encrypts it. ${KEPT}`}
      />
    </details>
  );
}

type NameOf<Value> = {
  [K in keyof ConnectionDraft]: ConnectionDraft[K] extends Value ? K : never;
}[keyof ConnectionDraft];

interface FieldOf<Name> {
  part: Part;
  name: Name;
  path: string;
  label: string;
  hint?: string;
}

function Line({ part: { draft, faults, change }, name, ...rest }: FieldOf<NameOf<string>>) {
  return <TextInput {...rest} faults={faults} value={draft[name]} onChange={(value) => change({ [name]: value })} />;
}

type SecretName = 'token' | 'password' | 'clientSecret' | 'ca' | 'cert' | 'key';

function Secret({
  part: { draft, faults, change },
  name,
  hint = KEPT,
  ...rest
}: FieldOf<SecretName> & { rows?: number }) {
  return (
    <CredentialField
      {...{ ...rest, faults, typed: draft[name] }}
      hint={draft[name].isFile ? OF_FILES : hint}
      onChange={(typed) => change({ [name]: typed })}
    />
  );
}
