import { useEffect, useState } from 'preact/hooks';
import { PAGES } from '../pages/pages.ts';
import pages from '../../pages.json';
import { type PageName, href, place } from '../state/route.ts';
import { Search } from '../search/search.tsx';
import { may } from '../state/session.ts';
import { Settings } from './settings.tsx';

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
