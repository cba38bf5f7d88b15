import { LRUCache } from 'lru-cache';
import type { HandoffTarget } from '../../core/schedules/schedule.ts';
import { type OwnShortage, ownShortageOf } from '../../runtime/own-shortage.ts';
import { reasonOf } from '../../runtime/reason.ts';
import { type SecretFiles, isSame, readAll } from '../../targets/login/secret-files.ts';
import type { SendableHandoff } from './handoff-definitions.ts';

/** The target of a definition with what its files say now; `fault`: why it cannot be sent; null: they cannot be read now. */
export type FillTarget = (
  handoff: SendableHandoff,
) => Promise<{ target: HandoffTarget<string> } | { fault: string } | null>;

const MOST_KEPT = 1_000;
const MAX_BYTES_KEPT = 16 * 1024 * 1024;

interface Filled {
  texts: ReadonlyMap<string, string>;
  target: HandoffTarget<string>;
}

/** Asks at each attempt whether a file has changed. What is prepared of a target is so until one has. */
export function createTargetFiller(deps: { files: SecretFiles; shortage: OwnShortage }): FillTarget {
  const { files, shortage } = deps;
  const kept = new LRUCache<SendableHandoff, Filled>({
    max: MOST_KEPT,
    maxSize: MAX_BYTES_KEPT,
    sizeCalculation: ({ target }) => JSON.stringify(target).length,
  });
  return async (handoff) => {
    const { ofFiles, target } = handoff;
    if (ofFiles === null) return { target };
    try {
      const texts = await readAll(files, ofFiles.names);
      const last = kept.get(handoff);
      if (last !== undefined && isSame(last.texts, texts)) return last;
      const filled = { texts, target: ofFiles.fill((name) => texts.get(name) ?? '') };
      kept.set(handoff, filled);
      return filled;
    } catch (error) {
      const lacked = ownShortageOf(error);
      if (lacked === null) return { fault: `nothing was sent: ${reasonOf(error)}` };
      shortage.met(lacked);
      return null;
    }
  };
}
