import { type Loop, createLoop } from '../../runtime/loop/loop.ts';
import type { LoopDeps } from '../../postgres/database.ts';
import { editionsDueWithin } from '../../store/schedules/schedule-versions.ts';
import { type HandoffDefinitions, MAX_KEPT } from './handoff-definitions.ts';

interface ReadAheadDeps extends LoopDeps {
  definitions: HandoffDefinitions;
}

const EVERY_MS = 5_000;
/** So a definition that cannot be read now is asked for once or twice more before its schedule is due. */
const AHEAD_MS = 15_000;
/** Where more are due, keeping them would push others out that are due before them. */
const MAX_AHEAD = MAX_KEPT / 2;
/** For one statement: it takes some milliseconds, and so does reading its answer. */
const BATCH = 500;

/** Saves time: definitions that a herd needs are read before it is due. Without it, the attempts that need them read them. */
export function createReadAhead({ database, clock, events, definitions }: ReadAheadDeps): Loop {
  async function pass(): Promise<number> {
    const due = await database.run((db) => editionsDueWithin(db, { ms: AHEAD_MS, atMost: MAX_AHEAD }));
    const unknown = due.filter((key) => definitions.known(key) === undefined);
    for (let from = 0; from < unknown.length; from += BATCH) {
      await definitions.load(unknown.slice(from, from + BATCH));
    }
    events.emit({ type: 'definitionsReadAhead', count: unknown.length });
    return EVERY_MS;
  }

  return createLoop({ name: 'read-ahead', clock, events, body: pass });
}
