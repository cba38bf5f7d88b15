import type { Scope } from './scope.ts';

export const ROLES = ['viewer', 'worker', 'operator', 'admin'] as const;

export type Role = (typeof ROLES)[number];

/** The role that a route needs; `any`: a token of any role. */
export type RoleNeeded = Role | 'any';

/** The caller of a request. */
export interface Caller {
  /** Null: the API did not ask for a name. */
  readonly name: string | null;
  readonly role: Role;
  readonly scope: Scope;
}

/**
 * The roles that may make a call that needs this role. A viewer reads and a worker works: neither may do what the other
 * may.
 */
const OPEN_TO: Record<RoleNeeded, readonly Role[]> = {
  any: ROLES,
  viewer: ['viewer', 'operator', 'admin'],
  worker: ['worker', 'operator', 'admin'],
  operator: ['operator', 'admin'],
  admin: ['admin'],
};

export function mayCall(role: Role, needed: RoleNeeded): boolean {
  return OPEN_TO[needed].includes(role);
}

export function isRole(text: string): text is Role {
  return (ROLES as readonly string[]).includes(text);
}

/** The name in `by` for changes by firelock itself: no caller may have this name. */
const OWN_NAME = 'firelock';
/** The name for changes that firelock makes because of its schedules file. */
export const SCHEDULES_FILE_NAME = 'schedules-file';

/** In any letter case: readers of the audit would take one for the other. */
function isReserved(text: string): boolean {
  return [OWN_NAME, SCHEDULES_FILE_NAME].includes(text.toLowerCase());
}

/** A name from a proxy may be a mail address; the name of a token has no `@` and no `+`. */
export function isCallerName(text: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}$/.test(text) && !isReserved(text);
}

export const TOKEN_NAME_RULE =
  `1 to 63 letters (A-Z, a-z), digits, dots, dashes or underscores, begin with a letter or digit, and be neither ` +
  `"${OWN_NAME}", "${SCHEDULES_FILE_NAME}" nor a token`;

export function isTokenName(text: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/.test(text) && !isReserved(text) && !text.startsWith('flk_');
}
