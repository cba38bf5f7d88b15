import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { pidsOfTree } from '../support/measures/cpu.ts';

const PASSES = 5;

/** Cores as Linux lists them: `0`, `0,1`, `0-3,6`. Throws where it is not such a list. */
export function parseCores(list: string): number[] {
  if (!/^\d+(-\d+)?(,\d+(-\d+)?)*$/.test(list)) throw new Error(`${list || 'nothing'} is no list of cores`);
  return list.split(',').flatMap((part) => {
    const [first = 0, last = first] = part.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  });
}

/** Why processes cannot be kept on these cores; null if they can. */
export function pinningTrouble(cores: readonly number[]): string | null {
  if (spawnSync('taskset', ['--version']).error)
    return 'taskset is missing: install util-linux. Only Linux has it.';
  const allowed = allowedCores(process.pid);
  const missing = cores.filter((core) => !allowed.includes(core));
  return missing.length === 0
    ? null
    : `core ${missing.join()} is not there for this process; it may use ${allowed.join()}`;
}

/** Keeps a process, its threads and its descendants on these cores; what they start later inherits it. */
export function pin(pid: number, cores: readonly number[]): void {
  // A child that began while others were pinned has its parent's old cores: so it is looked again.
  for (let pass = 0; pass < PASSES; pass += 1) {
    const elsewhere = pidsOfTree(pid).filter((one) => isElsewhere(one, cores));
    if (elsewhere.length === 0) return;
    for (const one of elsewhere) spawnSync('taskset', ['-a', '-c', '-p', cores.join(), String(one)]);
  }
  throw new Error(`process ${pid} does not stay on core ${cores.join()}`);
}

function isElsewhere(pid: number, cores: readonly number[]): boolean {
  const allowed = allowedCores(pid);
  return allowed.length > 0 && allowed.join() !== cores.join();
}

/** None where the process is gone. */
function allowedCores(pid: number): number[] {
  try {
    const found = /^Cpus_allowed_list:\s+(\S+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
    return parseCores(found?.[1] ?? '');
  } catch {
    return [];
  }
}
