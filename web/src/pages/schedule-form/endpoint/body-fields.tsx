import { useId } from 'preact/hooks';
import { BODY_PLACEHOLDERS } from '../../../../../src/core/http/body-template.ts';
import { AreaField, type Part, SelectField, TextField } from '../inputs.tsx';

const BODIES = [
  ['envelope', "firelock's own JSON about the run"],
  ['payload', 'the payload, byte for byte'],
  ['template', 'a text of my own'],
] as const;
const TYPES = ['application/json', 'application/x-www-form-urlencoded', 'text/plain', 'application/xml'];

/** What a request carries. */
export function BodyFields({ part }: { part: Part }) {
  const { bodyKind } = part.draft;
  const types = useId();
  return (
    <>
      <SelectField
        {...{ part, path: '/target/body', name: 'bodyKind', options: BODIES }}
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
                one inside quotes becomes text, and one outside of them a value. No place for a secret:
                whoever may read the schedule sees the text.
              </>
            }
          />
        </>
      )}
    </>
  );
}
