import type { Database } from './database.ts';

/** The connections of one instance, apart by what must not wait for what. */
interface DatabasePools {
  /** Ticks, claims, outcomes and what follows from them, and the take-over of lost runs: quick all of it. */
  main: Database;
  /** Calls of the API: no number of slow ones keeps a fire waiting for a connection. */
  api: Database;
  /** What may take long and may wait: samples, history, backstops. */
  background: Database;
  /** Nothing that is slow makes this instance look dead. */
  heartbeat: Database;
}

interface PoolOptions {
  databaseUrl: string;
  /** Of main, api and background together; 2 at least. */
  connections: number;
  openDatabase: (url: string, size: number) => Database;
}

export function openPools({ databaseUrl, connections, openDatabase }: PoolOptions) {
  const shares = sharesOf(connections);
  const api = openDatabase(databaseUrl, shares.api);
  const background = shares.background === 0 ? api : openDatabase(databaseUrl, shares.background);
  return {
    main: openDatabase(databaseUrl, shares.main),
    api,
    background,
    heartbeat: openDatabase(databaseUrl, 1),
  } satisfies DatabasePools;
}

/** With two connections in all, the background has those of the API. */
function sharesOf(connections: number): { main: number; api: number; background: number } {
  const api = Math.max(1, Math.floor(connections / 3));
  const background = connections >= 8 ? 2 : connections >= 3 ? 1 : 0;
  return { main: connections - api - background, api, background };
}
