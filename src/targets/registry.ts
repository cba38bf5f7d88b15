import { hash } from 'node:crypto';
import type { HandoffTarget } from '../core/schedules/schedule.ts';
import type { TargetKind } from './target.ts';

export interface TargetRegistry {
  /** The types that this version can hand off; it does not claim runs of other types. */
  readonly types: readonly string[];
  kindOf(target: HandoffTarget): TargetKind | undefined;
  /**
   * `type`, a space, and the name under which runs share slots: `http https://api.example.com`; for a pull target, its
   * queue. At most 200 bytes: a longer name becomes its beginning and a hash.
   */
  laneOf(target: HandoffTarget): string;
  /** Whether this version knows the kind at the beginning of a lane's name; other lanes are left to a version that does. */
  canSend(lane: string): boolean;
  /** Closes every kind: waits for the work under way. */
  close(): Promise<void>;
}

export function createTargetRegistry(kinds: readonly TargetKind[]): TargetRegistry {
  const byType = new Map<string, TargetKind>(kinds.map((kind) => [kind.type, kind]));
  const laneWithin = (target: HandoffTarget): string =>
    target.type === 'pull' ? target.queue : (byType.get(target.type)?.laneOf(target) ?? '');
  const beginnings = kinds.map(({ type }) => `${type} `);
  return {
    types: [...byType.keys()],
    kindOf: (target) => byType.get(target.type),
    laneOf: (target) => boundedLane(`${target.type} ${laneWithin(target)}`),
    canSend: (lane) => beginnings.some((beginning) => lane.startsWith(beginning)),
    close: async () => {
      await Promise.all(kinds.map((kind) => kind.close()));
    },
  };
}

/** A lane's name is part of index rows, and PostgreSQL takes none of more than a third of a page. */
const MAX_BYTES = 200;

/** A short lane as it is. A longer one becomes its beginning, for readers, and its hash, which keeps it apart from others. */
function boundedLane(lane: string): string {
  if (Buffer.byteLength(lane) <= MAX_BYTES) return lane;
  const end = `#${hash('sha256', lane)}`;
  const { read } = new TextEncoder().encodeInto(lane, new Uint8Array(MAX_BYTES - end.length));
  return lane.slice(0, read) + end;
}
