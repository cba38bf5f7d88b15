import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { Recurring } from '../contestant.ts';
import { startFirelock } from '../firelock.ts';
import type { Stage } from '../herd.ts';
import { type Daemon, startDaemon } from '../support/processes/daemon.ts';
import { openServer } from '../support/processes/postgres.ts';
import { startReceiver } from '../support/processes/receiver.ts';
import { pidsOfTree } from '../support/measures/cpu.ts';

/** A PostgreSQL and a target of its own, kept on cores; nothing of it is shared with another cell. */
export interface Cell extends Stage {
  name: string;
  /** Of PostgreSQL and of the instances. */
  cores: readonly number[];
  /** Whether the target works on the same cores. */
  sharesCores: boolean;
  close(): Promise<void>;
}

export interface Ground {
  main: string;
  /** A major version; null: the embedded one. */
  postgres: string | null;
  /** Null: the target is on the cores of its cell. */
  targetCores: readonly number[] | null;
}

const open = new Set<Cell>();

/** Those that are open when the measurement is stopped early: a PostgreSQL does not end with the process that started it. */
export async function closeCells(): Promise<void> {
  await Promise.allSettled([...open].map((cell) => cell.close()));
}

export async function openCell(name: string, cores: readonly number[], ground: Ground): Promise<Cell> {
  const server = await openServer(ground.postgres ?? '');
  try {
    if (server.postmaster === null) throw new Error('the processes of PostgreSQL cannot be seen');
    pin(server.postmaster, cores);
    const database = await server.createDatabase();
    const receiver = await startReceiver();
    pin(receiver.pid, ground.targetCores ?? cores);
    const cell: Cell = {
      ...{ name, cores, server, database, receiver },
      sharesCores: ground.targetCores === null,
      close: async () => {
        open.delete(cell);
        await receiver.stop();
        await database.drop();
        await server.stop();
      },
    };
    open.add(cell);
    return cell;
  } catch (error) {
    await server.stop();
    throw error;
  }
}

/** The instances of a cell, on its cores. */
export async function startInstances(cell: Cell, main: string, instances: number): Promise<Recurring> {
  const { database, receiver, cores } = cell;
  const contestant = await startFirelock({
    main,
    database,
    instances,
    targetUrl: receiver.url,
    nodeOptions: [],
  });
  for (const pid of [contestant.pid, ...(contestant.others ?? [])]) pin(pid, cores);
  return contestant;
}

/** One instance that can be killed, on the cores of the cell. */
export async function startInstance({ database, cores }: Cell, main: string): Promise<Daemon> {
  // What an instance warns of here is what is done to it.
  const variables = { LOG_LEVEL: 'error' };
  const daemon = await startDaemon({ main, databaseUrl: database.url, nodeOptions: [], variables });
  pin(daemon.pid, cores);
  return daemon;
}

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
  if (spawnSync('taskset', ['--version']).error) return 'taskset is missing: install util-linux. Only Linux has it.';
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
