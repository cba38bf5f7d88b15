import { AsyncLocalStorage } from 'node:async_hooks';

/** Whose work this is, for what many use at once. */
interface Asker {
  /** They take turns by it. */
  key: string;
  /** It has no more than half of the places: what it asks for may take long, and is not urgent. */
  isModest: boolean;
}

const askers = new AsyncLocalStorage<Asker>();

/** All that `work` does, and what follows from it, is on behalf of this asker. */
export function onBehalfOf<T>(asker: Asker, work: () => T): T {
  return askers.run(asker, work);
}

/** Undefined: it is this instance's own work. */
export function currentAsker(): Asker | undefined {
  return askers.getStore();
}
