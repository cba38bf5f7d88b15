import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

/** One process and no other: pids are reused, but not a pid together with its start. */
export interface ProcessIdentity {
  readonly pid: number;
  /** When it started, in the platform's own notation; null where the platform does not tell. */
  readonly started: string | null;
}

/** The process that has this pid now; undefined if none does (a zombie counts as none). */
export async function identifyProcess(pid: number): Promise<ProcessIdentity | undefined> {
  if (!pidExists(pid)) return undefined;
  if (process.platform === 'linux') return identifyOnLinux(pid);
  if (process.platform === 'win32') return { pid, started: null };
  return identifyByPs(pid);
}

export async function isAlive(identity: ProcessIdentity): Promise<boolean> {
  const current = await identifyProcess(identity.pid);
  if (current === undefined) return false;
  return current.started === null || identity.started === null || current.started === identity.started;
}

/**
 * Like `isAlive`, for a process that is watched all the time: if a look at its start would cost a process, the pid
 * suffices.
 */
export async function isStillAlive(identity: ProcessIdentity): Promise<boolean> {
  return process.platform === 'linux' ? isAlive(identity) : pidExists(identity.pid);
}

/** Whether any process has this pid, a zombie included. */
export function pidExists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it exists and belongs to someone else.
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

export async function ownIdentity(): Promise<ProcessIdentity> {
  return (await identifyProcess(process.pid)) ?? { pid: process.pid, started: null };
}

/** The text form of an identity in lock files and user files. Undefined for any other text. */
export function parseIdentity(text: string): ProcessIdentity | undefined {
  const [pid, started] = text.split('\n');
  if (pid === undefined || !/^[1-9]\d*$/.test(pid)) return undefined;
  return { pid: Number(pid), started: started === undefined || started === '' ? null : started };
}

export function formatIdentity(identity: ProcessIdentity): string {
  return `${identity.pid}\n${identity.started ?? ''}\n`;
}

/** The boot id makes the start, counted in ticks since boot, unambiguous across reboots. */
async function identifyOnLinux(pid: number): Promise<ProcessIdentity | undefined> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
    // The name, field 2, may itself hold spaces and parentheses.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [state, ticks] = [fields[0], fields[19]];
    if (state === 'Z' || state === 'X') return undefined;
    const boot = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
    return { pid, started: ticks === undefined ? null : `${boot}/${ticks}` };
  } catch {
    // Gone in the meantime, or /proc hides the processes of others.
    return pidExists(pid) ? { pid, started: null } : undefined;
  }
}

async function identifyByPs(pid: number): Promise<ProcessIdentity | undefined> {
  try {
    const { stdout } = await promisify(execFile)('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], {
      env: { PATH: process.env['PATH'], LC_ALL: 'C' },
    });
    const [state, ...started] = stdout.trim().split(/\s+/);
    return state?.startsWith('Z') === true ? undefined : { pid, started: started.join(' ') };
  } catch {
    return pidExists(pid) ? { pid, started: null } : undefined;
  }
}
