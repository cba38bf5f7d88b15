import { availableParallelism } from 'node:os';

/** More than cores: most of the time goes into waiting for clocks, time limits and processes. */
const PER_CORE = 3;
/** A worker, the daemons that its test starts, and their sessions at the server. */
const MEMORY_OF_ONE = 768 * 1024 * 1024;

/** How many test files this machine carries at once: by the cores that this process may use, and by the memory that is free. */
export function workersHere(): number {
  return workersFor(availableParallelism(), process.availableMemory());
}

export function workersFor(cores: number, freeBytes: number): number {
  return Math.max(1, Math.min(1 + PER_CORE * cores, Math.floor(freeBytes / MEMORY_OF_ONE)));
}
