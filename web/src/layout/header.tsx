import { useEffect, useId, useState } from 'preact/hooks';
import type { Signal } from '@preact/signals';
import { PAGES } from '../pages/pages.ts';
import pages from '../../pages.json';
import { type PageName, href, place } from '../state/route.ts';
import { Search } from '../search/search.tsx';
import { isLasting, isNamed, logOut, may, me, scope, token } from '../state/session.ts';
import { call } from '../api/http.ts';
import { useAct } from '../state/act.ts';
import { theme } from '../state/theme.ts';
import { MY_ZONE, zoneChoice } from '../state/zone.ts';

interface Link {
  name: PageName;
  nav: string;
}

/** The name, the way to each page, and what is chosen for all of them. */
export function Header({ current }: { current: PageName | undefined }) {
  const [isOpen, setOpen] = useState(false);
  const [isSetupOpen, setSetupOpen] = useState(false);
  useEffect(() => {
    setOpen(false);
    setSetupOpen(false);
  }, [place.value.path]);
  const links = (Object.keys(pages) as PageName[]).flatMap((name) => {
    const { nav, role, isSetup = false } = PAGES[name];
    return nav === undefined || (role !== undefined && !may(role)) ? [] : [{ name, nav, isSetup }];
  });
  const setup = links.filter(({ isSetup }) => isSetup);
  const isCurrent = ({ nav }: Link): boolean => current !== undefined && PAGES[current].nav === nav;
  const link = (to: Link) => (
    <a key={to.name} href={href(pages[to.name])} aria-current={isCurrent(to) ? 'page' : undefined}>
      {to.nav}
    </a>
  );
  return (
    <header class="top">
      <a class="brand" href={href('/')}>
        <svg viewBox="0 0 32 32" aria-hidden="true">
          <rect width="32" height="32" rx="7" />
          <path d="M16 6.500c1 4.500 6.500 6 6.500 12.500a6.500 6.500 0 0 1-13 0c0-2.500 1-4 2.300-5.300.2 1.800.9 2.800 2.100 3.300C13.500 13 14 9.500 16 6.500z" />
        </svg>
        firelock
      </a>
      <button
        type="button"
        class="plain menu"
        aria-expanded={isOpen}
        aria-controls="navigation"
        onClick={() => {
          setOpen(!isOpen);
        }}
      >
        Menu
      </button>
      <div id="navigation" class={isOpen ? 'open' : ''}>
        <nav aria-label="Pages">
          {links.filter(({ isSetup }) => !isSetup).map(link)}
          <details
            open={isSetupOpen}
            onToggle={({ currentTarget }) => {
              setSetupOpen(currentTarget.open);
            }}
          >
            <summary aria-current={setup.some(isCurrent) ? 'true' : undefined}>Settings</summary>
            <div>{setup.map(link)}</div>
          </details>
        </nav>
        <Search />
        <Settings />
      </div>
    </header>
  );
}

/** Zone and theme of all pages, and who is logged in. */
function Settings() {
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
