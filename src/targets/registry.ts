import type { Target } from '../core/schedules/schedule.ts';
import { boundedLane } from './bounded-lane.ts';
import type { TargetKind } from './target.ts';

export interface TargetRegistry {
  /** The types that this version can hand off; a run of any other is not claimed. */
  readonly types: readonly string[];
  kindOf(target: Target): TargetKind | undefined;
  /**
   * `type`, a space, and what the kind shares its cap by: `http https://api.example.com`; of what is not sent, its queue. At most 200
   * bytes: of what is longer the beginning and a hash.
   */
  laneOf(target: Target): string;
  /** Whether this version knows the kind that a lane begins with; what it does not is left to a version that does. */
  canSend(lane: string): boolean;
  /** Closes every kind: waits for what is under way. */
  close(): Promise<void>;
}

export function createTargetRegistry(kinds: readonly TargetKind[]): TargetRegistry {
  const byType = new Map<string, TargetKind>(kinds.map((kind) => [kind.type, kind]));
  const laneWithin = (target: Target): string =>
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
