import { useId } from 'preact/hooks';
import { call } from '../api/http.ts';
import { useAct } from '../state/act.ts';
import { isLasting, isNamed, logOut, me, scope, token } from '../state/session.ts';
import { theme } from '../state/theme.ts';
import { MY_ZONE, zoneChoice } from '../state/zone.ts';
import type { Signal } from '@preact/signals';

/** Zone and theme of all pages, and who is logged in. */
export function Settings() {
  return (
    <div class="settings">
      <Choice
        label="Times in"
        chosen={zoneChoice}
        options={[
          ['schedule', "Schedule's zone"],
          ['mine', `Mine: ${MY_ZONE}`],
          ['utc', 'UTC'],
        ]}
      />
      <Choice
        label="Theme"
        chosen={theme}
        options={[
          ['system', 'System'],
          ['light', 'Light'],
          ['dark', 'Dark'],
        ]}
      />
      {isNamed.value && me.value && (
        <span class="who" title={`Logged in as ${me.value.name}, whose role is ${me.value.role}`}>
          {me.value.name} <span class="quiet">{me.value.role}</span>
          {scope.value !== null && (
            <span class="quiet"> sees {scope.value.map((prefix) => `${prefix}*`).join(', ')}</span>
          )}
        </span>
      )}
      {(token.value !== null || isLasting.value) && <LogOut />}
    </div>
  );
}

/** A login that lasts ends at every instance, or it goes on: then the daemon says why. */
function LogOut() {
  const { act, isBusy } = useAct();
  const leave = async (): Promise<string> => {
    if (isLasting.value) await call('DELETE', '/session');
    logOut();
    return 'You are logged out.';
  };
  return (
    <button type="button" class="plain" disabled={isBusy} onClick={() => void act(leave)}>
      Log out
    </button>
  );
}

interface ChoiceProps<T extends string> {
  label: string;
  chosen: Signal<T>;
  options: readonly (readonly [value: T, text: string])[];
}

function Choice<T extends string>({ label, chosen, options }: ChoiceProps<T>) {
  const id = useId();
  return (
    <>
      <label for={id} class="unseen">
        {label}
      </label>
      <select
        id={id}
        title={label}
        value={chosen.value}
        onChange={({ currentTarget }) => {
          const option = options.find(([value]) => value === currentTarget.value);
          if (option) chosen.value = option[0];
        }}
      >
        {options.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </>
  );
}
