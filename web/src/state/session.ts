import { computed, signal } from '@preact/signals';
import type { Caller } from '../../../clients/typescript/src/generated/types.gen.ts';

export type Role = Caller['role'];

const TOKEN = 'firelock.token';
const LASTING = 'firelock.lasting';

/** Sent with each call; null: none, or a cookie does the same. It is kept for this tab, and forgotten with it. */
export const token = signal<string | null>(readToken());

/** A cookie, which no script can read, logs the browser in: all of its tabs. */
export const isLasting = signal(readLasting());

/** Who the caller is; null until the daemon has said so. */
export const me = signal<Caller | null>(null);

/** The daemon wants to know who calls. */
export const mustLogIn = signal(false);

const OPEN_TO: Record<Role, readonly Role[]> = {
  viewer: ['viewer', 'operator', 'admin'],
  worker: ['worker', 'operator', 'admin'],
  operator: ['operator', 'admin'],
  admin: ['admin'],
};

/** Whether to offer what needs this role. The daemon decides in the end. */
export function may(needed: Role): boolean {
  return me.value !== null && OPEN_TO[needed].includes(me.value.role);
}

/** The prefixes of the names that the caller sees; null: all. */
export const scope = computed(() => me.value?.scope ?? null);

/** Whether the daemon calls its caller by a name. */
export const isNamed = computed(() => typeof me.value?.name === 'string');

export function keepToken(value: string | null): void {
  token.value = value;
  try {
    if (value === null) sessionStorage.removeItem(TOKEN);
    else sessionStorage.setItem(TOKEN, value);
  } catch {
    // The token then holds until the page is loaded again.
  }
}

export function keepLasting(lasts: boolean): void {
  isLasting.value = lasts;
  try {
    if (lasts) localStorage.setItem(LASTING, 'yes');
    else localStorage.removeItem(LASTING);
  } catch {
    // Then it is not known when the page is loaded again, and ends by itself.
  }
}

export function logOut(): void {
  keepToken(null);
  keepLasting(false);
  me.value = null;
  mustLogIn.value = true;
}

function readLasting(): boolean {
  try {
    return localStorage.getItem(LASTING) !== null;
  } catch {
    return false;
  }
}

function readToken(): string | null {
  try {
    return sessionStorage.getItem(TOKEN);
  } catch {
    return null;
  }
}
