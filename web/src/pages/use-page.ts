import { useEffect, useState } from 'preact/hooks';
import type { PageName } from '../state/route.ts';
import type { ShownPage } from './page-props.ts';
import { PAGES } from './pages.ts';

/** Those that were loaded after the first ones: opened again, they are there at once. */
const loaded = new Map<PageName, ShownPage>();

/** The component of a page; null while it is loaded. It cannot be had where the daemon is away, or has other files by now. */
export function usePage(name: PageName): { shown: ShownPage | null; isLost: boolean } {
  const { show } = PAGES[name];
  const [isLost, setLost] = useState(false);
  const [, setLoaded] = useState(loaded.size);
  const shown = typeof show === 'function' ? show : (loaded.get(name) ?? null);
  useEffect(() => {
    if (typeof show === 'function' || loaded.has(name)) return;
    show.load().then(
      (page) => {
        loaded.set(name, page);
        setLoaded(loaded.size);
      },
      () => {
        setLost(true);
      },
    );
  }, [name]);
  return { shown, isLost };
}
