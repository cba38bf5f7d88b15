import { join } from 'node:path';

/** For NODE_COMPILE_CACHE of daemons: a third of what one takes to start is compiling what the one before it has compiled. */
export const COMPILE_CACHE = join(import.meta.dirname, '..', '..', 'node_modules', '.cache', 'firelock-test');
