export const ROLES = ['viewer', 'worker', 'operator', 'admin'] as const;

export type Role = (typeof ROLES)[number];

/** What a route asks of its caller; `any`: a token of any role. */
export type RoleNeeded = Role | 'any';

/** Who makes a request. */
export interface Caller {
  /** Null: the caller was not asked for a name. */
  readonly name: string | null;
  readonly role: Role;
}

/** The roles that a call is open to which needs this one. A viewer reads and a worker works: neither may do what the other may. */
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

/** Of what firelock itself does, `by` says this: no caller may have this name. */
const OWN_NAME = 'firelock';
/** Of what it does because the file says so that it is started with. */
export const SCHEDULES_FILE_NAME = 'schedules-file';

function isReserved(text: string): boolean {
  return text === OWN_NAME || text === SCHEDULES_FILE_NAME;
}

/** A person's name from a proxy may be a mail address; the name of a token has no `@` and no `+`. */
export function isCallerName(text: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}$/.test(text) && !isReserved(text);
}

export const TOKEN_NAME_RULE =
  `1 to 63 letters (A-Z, a-z), digits, dots, dashes or underscores, begin with a letter or digit, and be neither ` +
  `"${OWN_NAME}", "${SCHEDULES_FILE_NAME}" nor a token`;

export function isTokenName(text: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/.test(text) && !isReserved(text) && !text.startsWith('flk_');
}
