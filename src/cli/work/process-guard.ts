import { type ChildProcess, spawn } from 'node:child_process';

/**
 * Ends the process groups of commands whose worker has died (kill -9, out of memory): Linux would let them go on, unknown to anyone, while
 * another worker does their runs again. Node cannot ask the kernel for that (prctl), so a shell in a session of its own, which no
 * signal to the worker's group reaches, holds the end of a pipe: its end-of-file says that the worker is gone, however that came. It knows
 * each group before the command in it begins.
 */
export interface ProcessGuard {
  add(group: number): void;
  remove(group: number): void;
}

/** Reads "+ GROUP" and "- GROUP". What it removes at last is the folder of the worker's files. */
const SCRIPT = `trap '' TERM INT HUP
groups=
keep() { # TEST
  kept=
  for group in $groups; do
    if "$@" "$group"; then kept="$kept $group"; fi
  done
  groups=$kept
}
other() { [ "$1" != "$2" ]; }
lives() { kill -0 "-$1" 2>/dev/null; }
while read -r sign group; do
  case $sign in
  +) groups="$groups $group" ;;
  -) keep other "$group" ;;
  esac
done
for group in $groups; do kill -TERM "-$group" 2>/dev/null; done
seconds=0
keep lives
while [ -n "$groups" ] && [ "$seconds" -lt "$1" ]; do
  sleep 1
  seconds=$((seconds + 1))
  keep lives
done
for group in $groups; do kill -KILL "-$group" 2>/dev/null; done
rm -rf "$2"`;

export function startGuard({ graceSeconds, folder }: { graceSeconds: number; folder: string }): ProcessGuard {
  const groups = new Set<number>();
  let shell: ChildProcess | null = null;
  /** Another one if it has died. */
  const write = (line: string): void => {
    if (shell?.exitCode !== null || shell.signalCode !== null) {
      shell = spawn('/bin/sh', ['-c', SCRIPT, 'firelock-guard', String(Math.ceil(graceSeconds)), folder], {
        cwd: '/',
        detached: true,
        stdio: ['pipe', 'ignore', 'ignore'],
      });
      shell.on('error', () => undefined);
      shell.on('exit', () => groups.size > 0 && write(''));
      shell.stdin?.on('error', () => undefined);
      shell.unref();
      line = [...groups].map((group) => `+ ${group}\n`).join('');
    }
    shell.stdin?.write(line);
  };
  write('');
  return {
    add: (group) => {
      groups.add(group);
      write(`+ ${group}\n`);
    },
    remove: (group) => {
      groups.delete(group);
      write(`- ${group}\n`);
    },
  };
}
