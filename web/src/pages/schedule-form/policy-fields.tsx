import type { Fault } from '../../api/http.ts';
import { Field } from '../../parts/forms/field.tsx';
import { Pairs } from '../../parts/forms/pairs.tsx';
import type { Draft } from './draft.ts';
import { AreaField } from '../../parts/forms/draft-fields.tsx';
import type { Part } from './inputs.tsx';

interface Policy {
  name: string;
  label: string;
  hint: string;
  /** Absent: a number or a text. The first is the default. */
  options?: readonly (readonly [value: string, text: string])[];
  /** What holds if nothing is typed. */
  otherwise?: string;
}

const LATENESS: readonly Policy[] = [
  {
    name: 'catchUp',
    label: 'Fires that were missed',
    hint: 'A fire is missed if no instance could plan it within the grace below.',
    options: [
      ['latest', 'latest: one run for all of them'],
      ['skip', 'skip: none, but it is recorded'],
      ['all', 'all: each of them'],
    ],
  },
  {
    name: 'graceSeconds',
    label: 'Grace, seconds',
    hint: 'Up to that late a fire is on time.',
    otherwise: '60',
  },
  {
    name: 'catchUpLimit',
    label: 'At most',
    hint: 'Under all: that many of an outage, the newest.',
    otherwise: '100',
  },
  {
    name: 'overlap',
    label: 'While an earlier run is active',
    hint: 'Active: between its first attempt and its end.',
    options: [
      ['allow', 'allow: start another'],
      ['skip', 'skip: record it as skipped'],
      ['queue', 'queue: the newest waits'],
      ['replace', 'replace: cancel the earlier one'],
    ],
  },
  {
    name: 'jitterSeconds',
    label: 'Jitter, seconds',
    hint: 'Each fire is put off by a fixed part of that, so that not all schedules fire at once.',
    otherwise: '0',
  },
];

const HANDOFF: readonly Policy[] = [
  {
    name: 'delivery',
    label: 'After a call whose answer never came',
    hint: 'It may have arrived. The run id is the same each time, so that the target can tell.',
    options: [
      ['atLeastOnce', 'at least once: call again'],
      ['atMostOnce', 'at most once: never again'],
    ],
  },
  {
    name: 'completion',
    label: 'A 2xx means',
    hint: 'A callback run goes on until somebody calls /complete.',
    options: [
      ['response', 'response: it is done'],
      ['callback', 'callback: it was accepted'],
    ],
  },
  {
    name: 'completionTimeoutSeconds',
    label: 'Silence until a callback run is lost, seconds',
    hint: 'Without /heartbeat or /complete.',
    otherwise: '3600',
  },
  {
    name: 'timeoutSeconds',
    label: 'One attempt takes at most, seconds',
    hint: 'From name to last byte.',
    otherwise: '30',
  },
  {
    name: 'retry/maxAttempts',
    label: 'Attempts',
    hint: 'Failures after which it is given up.',
    otherwise: '5',
  },
  {
    name: 'retry/minBackoffSeconds',
    label: 'First wait, seconds',
    hint: 'It doubles each time.',
    otherwise: '10',
  },
  {
    name: 'retry/maxBackoffSeconds',
    label: 'Longest wait, seconds',
    hint: 'It grows no further.',
    otherwise: '3600',
  },
  {
    name: 'priority',
    label: 'Priority',
    hint: 'Which of the waiting runs goes first.',
    options: [
      ['normal', 'normal'],
      ['high', 'high'],
      ['low', 'low'],
    ],
  },
  {
    name: 'limit',
    label: 'Limit',
    hint: 'Its id: how many runs that name it may be under way at once.',
    otherwise: 'none',
  },
];

const WATCH: readonly Policy[] = [
  {
    name: 'pauseAfterFailures',
    label: 'Pause after failures',
    hint: 'That many in a row pause it.',
    otherwise: 'never',
  },
  {
    name: 'successWithinSeconds',
    label: 'Late without a success for, seconds',
    hint: 'It is said to be late then.',
    otherwise: 'never',
  },
];

/** By which rules; each has a default that most schedules keep. */
export function PolicyFields({ part }: { part: Part }) {
  const { draft, change, faults } = part;
  return (
    <fieldset>
      <legend>How</legend>
      <Group title="When it is late, or an earlier run is active" policies={LATENESS} part={part} />
      <Group title="How a run is handed over" policies={HANDOFF} part={part} />
      <Group title="When it keeps failing" policies={WATCH} part={part} />
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

function PolicyField({
  policy: { name, label, hint, options, otherwise },
  faults,
  value,
  onChange,
}: FieldProps) {
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

/** Of the API's faults, those that have a field here. */
export const POLICY_PATHS = [...LATENESS, ...HANDOFF, ...WATCH].map(({ name }) => `/${name}`);
