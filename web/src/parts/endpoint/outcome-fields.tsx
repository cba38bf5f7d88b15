import { SelectField, TextField } from '../forms/draft-fields.tsx';
import { EMPTY_ENDPOINT } from './endpoint-draft.ts';
import type { HttpPart } from './http-part.ts';

const REQUIRED = [
  ['', 'nothing more'],
  ['pointer', 'a value in its JSON'],
  ['contains', 'a text'],
] as const;
const OTHERWISE = [
  ['', 'the default'],
  ['retry', 'try again'],
  ['fail', 'fail'],
] as const;
const NAMES = ['succeedOn', 'retryOn', 'failOn', 'required', 'otherwise'] as const;

/** What an answer means. Open where something is not the default. */
export function OutcomeFields({ part }: { part: HttpPart }) {
  const { draft } = part;
  return (
    <details open={NAMES.some((name) => draft[name] !== EMPTY_ENDPOINT[name])}>
      <summary>What counts as a success, if not each 2xx</summary>
      <div class="policies">
        <TextField
          {...{ part, path: '/target/outcome/succeed', name: 'succeedOn', isMono: true }}
          label="Succeed on"
          hint="Statuses: 409, 3xx, 400-404. One in no list is judged as usual."
        />
        <TextField
          {...{ part, path: '/target/outcome/retry', name: 'retryOn', isMono: true }}
          label="Try again on"
          hint="Under at most once too: you say that it was not taken."
        />
        <TextField
          {...{ part, path: '/target/outcome/fail', name: 'failOn', isMono: true }}
          label="Fail on"
          hint="The run ends as failed."
        />
      </div>
      <div class="policies">
        <SelectField
          {...{ part, path: '/target/outcome/require', name: 'required', options: REQUIRED }}
          label="A success must have"
          hint="In the first 64 KiB of the answer."
        />
        <RequiredFields part={part} />
        {draft.required !== '' && (
          <SelectField
            {...{ part, path: '/target/outcome/otherwise', name: 'otherwise', options: OTHERWISE }}
            label="Without it"
            hint="The default: try again; under at most once, fail."
          />
        )}
      </div>
    </details>
  );
}

function RequiredFields({ part }: { part: HttpPart }) {
  if (part.draft.required === '') return null;
  if (part.draft.required === 'contains')
    return (
      <TextField
        {...{ part, path: '/target/outcome/require/contains', name: 'contains', isMono: true }}
        label="Text in the answer"
        hint="Exactly that."
      />
    );
  return (
    <>
      <TextField
        {...{ part, path: '/target/outcome/require/pointer', name: 'pointer', isMono: true }}
        label="Place in the JSON"
        hint="A JSON pointer, such as /result/0/ok. Empty: the whole."
      />
      <TextField
        {...{ part, path: '/target/outcome/require/equals', name: 'equals', isMono: true }}
        label="Value there"
        hint='As JSON: true, 0, "ok".'
      />
    </>
  );
}
