import { type Daemon, type Variables, readyDaemon } from '../support/daemon.ts';
import { databaseOfTest } from '../support/of-test.ts';
import { QUICK_START } from '../support/runner/quick-start.ts';

/** A daemon whose heap ends at so many MiB: what it holds beyond that ends the process. */
export async function boundedDaemon(heapMiB: number, variables: Variables = {}): Promise<Daemon> {
  const { url } = await databaseOfTest();
  const NODE_OPTIONS = `${QUICK_START.NODE_OPTIONS} --max-old-space-size=${heapMiB}`;
  return readyDaemon(url, { ...variables, NODE_OPTIONS });
}

/** Its memory, heap and buffers, in MiB. */
export async function residentMiB(daemon: Daemon): Promise<number> {
  const { text } = await daemon.call('GET', '/metrics');
  return Number(/^process_resident_memory_bytes (\d+)/m.exec(text)?.[1]) / 1024 / 1024;
}
