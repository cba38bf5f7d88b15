/** What programs and Node itself need. Nothing of the caller's own configuration of firelock reaches the demo's instances. */
const KEPT = [
  'PATH',
  'HOME',
  'TMPDIR',
  'TEMP',
  'TMP',
  'SystemRoot',
  'LD_LIBRARY_PATH',
  'NODE_OPTIONS',
  'NODE_COMPILE_CACHE',
  // As root, PostgreSQL runs as the user who called sudo.
  'SUDO_UID',
  'SUDO_GID',
];

export function childEnvironment(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    KEPT.flatMap((name) => {
      const value = env[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}
