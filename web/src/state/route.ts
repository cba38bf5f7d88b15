import { signal } from '@preact/signals';
import pages from '../../pages.json';
import { BASE_PATH } from './base.ts';

export type PageName = keyof typeof pages;

interface Place {
  /** Below the base path. */
  path: string;
  query: URLSearchParams;
}

/** Where the user is. */
export const place = signal<Place>(here());

/** A list is the same name again and again; null and nothing leave it out. */
type Parameters = Record<string, string | readonly string[] | null | undefined>;

/** The address of a path of the dashboard, for links. */
export function href(path: string, query: Parameters = {}): string {
  return addressOf(path, withChanges(new URLSearchParams(), query));
}

/** The address of this page with other parameters; what is null goes. */
export function hrefHere(changes: Parameters): string {
  return addressOf(place.value.path, withChanges(place.value.query, changes));
}

/** To an address that href made. */
export function goTo(address: string, { replace = false } = {}): void {
  if (replace) history.replaceState(null, '', address);
  else history.pushState(null, '', address);
  const samePath = here().path === place.value.path;
  place.value = here();
  if (!replace && !samePath) scrollTo(0, 0);
}

/** Changes parameters of the address. The page of a list is left, since it belongs to the old filter. */
export function setQuery(changes: Parameters): void {
  goTo(hrefHere({ cursor: null, ...changes }), { replace: true });
}

/** Which page a path shows, and what stands in the places of its `:names`. */
export function pageAt(path: string): { name: PageName; params: Record<string, string> } | null {
  for (const [name, pattern] of Object.entries(pages)) {
    const params = match(pattern, path);
    if (params) return { name: name as PageName, params };
  }
  return null;
}

/** Links are plain; what leads to a page of the dashboard is shown without loading it anew. */
export function followLinks(): void {
  addEventListener('popstate', () => (place.value = here()));
  document.addEventListener('click', (event) => {
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    if (!link || event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    if (link.target !== '' || link.origin !== location.origin) return;
    const path = below(link.pathname);
    if (path === null || pageAt(path) === null || link.hash !== '') return;
    event.preventDefault();
    goTo(link.pathname + link.search);
  });
}

function withChanges(query: URLSearchParams, changes: Parameters): URLSearchParams {
  const changed = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes)) {
    changed.delete(name);
    for (const one of typeof value === 'string' ? [value] : (value ?? [])) {
      if (one !== '') changed.append(name, one);
    }
  }
  return changed;
}

function addressOf(path: string, query: URLSearchParams): string {
  const text = query.toString();
  return `${BASE_PATH}${path}${text === '' ? '' : `?${text}`}`;
}

function here(): Place {
  return { path: below(location.pathname) ?? '/', query: new URLSearchParams(location.search) };
}

function below(pathname: string): string | null {
  if (pathname === BASE_PATH) return '/';
  return pathname.startsWith(`${BASE_PATH}/`) ? pathname.slice(BASE_PATH.length) : null;
}

function match(pattern: string, path: string): Record<string, string> | null {
  const names = pattern.split('/');
  const steps = path.split('/');
  if (names.length !== steps.length) return null;
  const params: Record<string, string> = {};
  for (const [index, name] of names.entries()) {
    const step = steps[index] ?? '';
    if (name.startsWith(':') && step !== '') params[name.slice(1)] = decodeURIComponent(step);
    else if (name !== step) return null;
  }
  return params;
}
