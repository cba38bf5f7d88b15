import type { Recurring } from '../contestant.ts';
import { startFirelock } from '../firelock.ts';
import type { Stage } from '../herd.ts';
import { type Daemon, startDaemon } from '../support/processes/daemon.ts';
import { openServer } from '../support/processes/postgres.ts';
import { startReceiver } from '../support/processes/receiver.ts';
import { pin } from './pin.ts';

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
