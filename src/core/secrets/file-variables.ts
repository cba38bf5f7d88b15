/** The environment variables whose values a schedules file may take. */
export interface FileVariables {
  env: Readonly<Record<string, string | undefined>>;
  allowed: readonly string[];
  /** Where to add one: for the reader of a fault. */
  allowedBy: string;
}

/** A comma-separated list of names. A fault is one of a single entry. */
export function parseFileVariables(text: string): [names: string[], faults: { entry: string; message: string }[]] {
  const names = text.split(',').map((entry) => entry.trim());
  const faults = names.flatMap((entry) => {
    if (!/^[A-Za-z_]\w*$/.test(entry)) return [{ entry, message: 'is not the name of a variable' }];
    return isOwnVariable(entry) ? [{ entry, message: OWN }] : [];
  });
  return [names, faults];
}

/** The value; or the message of a fault. An empty secret is nearly always a mistake. */
export function fileVariable(
  name: string,
  { env, allowed, allowedBy }: FileVariables,
): { value: string } | { fault: string } {
  const value = env[name] ?? '';
  if (isOwnVariable(name)) return { fault: `the environment variable ${name} ${OWN}` };
  if (!allowed.includes(name))
    return {
      fault: `the environment variable ${name} is not in the list of those that a file may use: ${allowedBy}`,
    };
  return value === '' ? { fault: `the environment variable ${name} is not set, or empty` } : { value };
}

/** The author of a file chooses where a value goes, so firelock never fills in its own keys and passwords. */
function isOwnVariable(name: string): boolean {
  return /^(?:FIRELOCK_|OTEL_)/.test(name) || ['DATABASE_URL', 'HOST', 'PORT', 'LOG_LEVEL'].includes(name);
}

const OWN = 'configures firelock itself, and no file may use it';
