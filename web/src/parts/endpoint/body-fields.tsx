import { useId } from 'preact/hooks';
import { BODY_PLACEHOLDERS } from '../../../../src/core/http/body-template.ts';
import { SecretPairs } from '../forms/secret-pairs.tsx';
import { AreaField, SelectField, TextField } from '../forms/draft-fields.tsx';
import type { EndpointDraft } from './endpoint-draft.ts';
import { type HttpPart, KEPT } from './http-part.ts';

const TYPES = ['application/json', 'application/x-www-form-urlencoded', 'text/plain', 'application/xml'];

interface Props {
  part: HttpPart;
  /** What each kind of body is. */
  bodies: readonly (readonly [kind: EndpointDraft['bodyKind'], text: string])[];
}

/** What a request carries. */
export function BodyFields({ part, bodies }: Props) {
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
                Filled in: <span class="mono">{BODY_PLACEHOLDERS}</span>, where … is a JSON pointer. In JSON,
                one inside quotes becomes text, and one outside of them a value. Whoever may read this sees
                the text: a secret has its place below.
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
