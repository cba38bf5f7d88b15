import type { Fault } from '../../api/http.ts';
import { Field } from '../../parts/forms/field.tsx';
import { Pairs } from '../../parts/forms/pairs.tsx';
import type { Draft } from './draft.ts';
import { AreaField } from '../../parts/forms/draft-fields.tsx';
import type { Part } from './inputs.tsx';
import { HANDOFF, LATENESS, type Policy, WATCH } from './policies.ts';

/** By which rules; each has a default that most schedules keep. */
export function PolicyFields({ part }: { part: Part }) {
  const { draft, change, faults } = part;
  return (
    <fieldset>
      <legend>How</legend>
      <Group title="When it is late, or an earlier run is active" policies={LATENESS} part={part} />
      <Group title="How a run is handed over" policies={HANDOFF} part={part} />
      <Group title="When it keeps failing, takes too long, or does nothing" policies={WATCH} part={part} />
      <AreaField {...{ part, path: '/description', name: 'description', rows: 2 }} label="Description" />
      <Pairs
        label="Labels"
        hint="To find it by, such as team and billing."
        path="/labels"
        words={['key', 'value']}
        pairs={draft.labels}
        faults={faults}
        onChange={(labels) => change({ labels })}
      />
    </fieldset>
  );
}

interface GroupProps {
  title: string;
  policies: readonly Policy[];
  part: Part;
}

/** Open where something in it is not the default, or is wrong. */
function Group({ title, policies, part: { draft, faults, change } }: GroupProps) {
  const isOpen = policies.some((policy) => isChanged(policy, draft.policies) || isFaulty(policy, faults));
  return (
    <details open={isOpen}>
      <summary>{title}</summary>
      <div class="policies">
        {policies.map((policy) => (
          <PolicyField
            key={policy.name}
            {...{ policy, faults }}
            value={draft.policies[policy.name] ?? ''}
            onChange={(value) => change({ policies: { ...draft.policies, [policy.name]: value } })}
          />
        ))}
      </div>
    </details>
  );
}

function isChanged({ name, options, otherwise }: Policy, policies: Draft['policies']): boolean {
  const value = policies[name] ?? '';
  return value !== '' && value !== (options?.[0]?.[0] ?? otherwise);
}

function isFaulty({ name }: Policy, faults: readonly Fault[]): boolean {
  return faults.some(({ path }) => path === `/${name}`);
}

interface FieldProps {
  policy: Policy;
  faults: readonly Fault[];
  value: string;
  onChange: (value: string) => void;
}

function PolicyField({ policy: { name, label, hint, options, otherwise }, faults, value, onChange }: FieldProps) {
  return (
    <Field label={label} hint={hint} path={`/${name}`} faults={faults}>
      {(props) =>
        options ? (
          <select
            {...props}
            value={value === '' ? options[0]?.[0] : value}
            onChange={({ currentTarget }) => {
              onChange(currentTarget.value);
            }}
          >
            {options.map(([option, text]) => (
              <option key={option} value={option}>
                {text}
              </option>
            ))}
          </select>
        ) : (
          <input
            {...props}
            placeholder={otherwise}
            autocomplete="off"
            value={value}
            onInput={({ currentTarget }) => {
              onChange(currentTarget.value);
            }}
          />
        )
      }
    </Field>
  );
}
