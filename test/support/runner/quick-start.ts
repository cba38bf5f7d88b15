import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** Makes modules resolve quickly, by `node --import`. */
export const QUICK_RESOLVE = pathToFileURL(join(import.meta.dirname, 'quick-resolve.ts')).href;

/** Variables of daemons: more than half of what one takes to start is compiling and resolving what the one before it has compiled and resolved. */
export const QUICK_START = {
  NODE_COMPILE_CACHE: join(import.meta.dirname, '..', '..', '..', 'node_modules', '.cache', 'firelock-test'),
  NODE_OPTIONS: `--import=${QUICK_RESOLVE}`,
};
