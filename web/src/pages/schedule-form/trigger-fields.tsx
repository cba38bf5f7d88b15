import { useId } from 'preact/hooks';
import { findSchedules } from '../../api/schedules.ts';
import { Field } from '../../parts/forms/field.tsx';
import { Segments } from '../../parts/forms/segments.tsx';
import { usePoll } from '../../state/poll.ts';
import type { Kind } from './draft.ts';
import { TextField } from '../../parts/forms/draft-fields.tsx';
import { ChecksField } from './checks.tsx';
import { hasDays } from './day-draft.ts';
import { DayRuleFields, ExcludeFields } from './day-fields.tsx';
import { MomentField, type Part } from './inputs.tsx';

const KIND_WORDS: readonly (readonly [Kind, string])[] = [
  ['cron', 'By cron'],
  ['everySeconds', 'Every so often'],
  ['at', 'Once'],
  ['after', 'After another'],
];
const SELDOM = { everyMs: 60_000 };
const ENDS = ['succeeded', 'failed', 'unknown', 'abandoned', 'skipped', 'cancelled', 'late'];

/** When it fires. */
export function TriggerFields({ part }: { part: Part }) {
  const { draft, change } = part;
  return (
    <fieldset>
      <legend>When</legend>
      <Segments label="How it fires" value={draft.kind} options={KIND_WORDS} onChange={(kind) => change({ kind })} />
      {draft.kind === 'cron' && <CronField part={part} />}
      {draft.kind === 'everySeconds' && (
        <TextField
          {...{ part, path: '/everySeconds', name: 'everySeconds', type: 'number' }}
          label="Seconds"
          hint="Counted from its start, or else from its creation; it never drifts."
        />
      )}
      {draft.kind === 'at' && (
        <MomentField {...{ part, path: '/at', name: 'at' }} label="At" hint="It fires once, and has ended then." />
      )}
      {draft.kind === 'after' ? <AfterFields part={part} /> : <ZoneField part={part} />}
      {draft.kind !== 'after' && draft.kind !== 'at' && <Limits part={part} />}
    </fieldset>
  );
}

function CronField({ part: { draft, change, faults } }: { part: Part }) {
  const { cron } = draft;
  const set = (index: number, text: string | null) => {
    change({ cron: cron.flatMap((one, at) => (at !== index ? [one] : text === null ? [] : [text])) });
  };
  return (
    <Field
      label="Cron expression"
      path="/cron"
      faults={faults}
      hint="minute hour day month weekday, or with seconds first: 0 9 * * MON-FRI. With several, it fires when any of them does."
    >
      {(props) => (
        <div class="pairs">
          {cron.map((text, index) => (
            <div key={index} class="pair">
              <input
                {...(index === 0 ? props : { 'aria-label': `Cron expression ${index + 1}` })}
                class="wide mono"
                spellcheck={false}
                autocomplete="off"
                value={text}
                onInput={({ currentTarget }) => set(index, currentTarget.value)}
              />
              {cron.length > 1 && (
                <button
                  type="button"
                  class="plain"
                  aria-label={`Remove expression ${index + 1}`}
                  onClick={() => set(index, null)}
                >
                  ✕
                </button>
              )}
            </div>
          ))}
          <button type="button" onClick={() => change({ cron: [...cron, ''] })}>
            Add an expression
          </button>
        </div>
      )}
    </Field>
  );
}

/** Of this browser; the daemon may know more, and decides. */
const ZONE_NAMES = ['UTC', ...Intl.supportedValuesOf('timeZone').filter((name) => name !== 'UTC')];

function ZoneField({ part }: { part: Part }) {
  const list = useId();
  return (
    <>
      <TextField
        {...{ part, path: '/timezone', name: 'timezone', list }}
        label="Zone"
        hint="Type a part of its name, such as Berlin. Empty: UTC."
      />
      <datalist id={list}>
        {ZONE_NAMES.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </>
  );
}

function AfterFields({ part }: { part: Part }) {
  const { draft, change, faults } = part;
  const list = useId();
  const found = usePoll(
    `parents ${draft.afterId}`,
    (signal) => findSchedules({ q: draft.afterId.replace('*', ''), limit: 20 }, signal),
    { ...SELDOM, keep: true },
  );
  return (
    <>
      <TextField
        {...{ part, path: '/after/scheduleId', name: 'afterId', list }}
        label="After runs of"
        hint="The id of a schedule; billing.* stands for each whose id begins so, and * for each at all, that is not itself fired in this way."
      />
      <datalist id={list}>
        <option value="*">every schedule</option>
        {found.data?.items.map(({ id }) => (
          <option key={id} value={id} />
        ))}
      </datalist>
      <ChecksField
        {...{ label: 'That end as', path: '/after/on', faults, options: ENDS }}
        chosen={draft.afterOn}
        onChange={(afterOn) => change({ afterOn })}
      />
    </>
  );
}

function Limits({ part }: { part: Part }) {
  const { draft } = part;
  const isUsed = draft.startAt + draft.endAt !== '' || hasDays(draft);
  return (
    <details open={isUsed}>
      <summary>First and last moment, and on which days</summary>
      <MomentField {...{ part, path: '/startAt', name: 'startAt' }} label="Not before" />
      <MomentField {...{ part, path: '/endAt', name: 'endAt' }} label="Not from then on" />
      <ExcludeFields part={part} />
      {draft.kind === 'cron' && <DayRuleFields part={part} />}
    </details>
  );
}
