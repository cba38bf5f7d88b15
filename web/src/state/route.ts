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

/** The address of a path of the dashboard, for links. */
export function href(path: string, query: Record<string, string | null | undefined> = {}): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value) params.set(name, value);
  const text = params.toString();
  return `${BASE_PATH}${path}${text === '' ? '' : `?${text}`}`;
}

/** To an address that href made. */
export function goTo(address: string, { replace = false } = {}): void {
  if (replace) history.replaceState(null, '', address);
  else history.pushState(null, '', address);
  const samePath = here().path === place.value.path;
  place.value = here();
  if (!replace && !samePath) scrollTo(0, 0);
}

/** Changes parameters of the address; null removes one. The page of a list is left, since it belongs to the old filter. */
export function setQuery(changes: Record<string, string | null>): void {
  const query = new URLSearchParams(place.value.query);
  query.delete('cursor');
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === '') query.delete(name);
    else query.set(name, value);
  }
  goTo(href(place.value.path, Object.fromEntries(query)), { replace: true });
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
