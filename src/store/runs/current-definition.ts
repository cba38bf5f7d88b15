import { sql } from 'drizzle-orm';
import type { CurrentDefinition } from '../../core/runs/transitions.ts';

/** What runs of a schedule go by now, as columns of its row. */
export const CURRENT_DEFINITION = sql`version, lane, priority, overlap, limit_id, outcome_watched`;

export interface CurrentDefinitionRow {
  version: number;
  lane: string;
  priority: number;
  overlap: string;
  limit_id: string | null;
  outcome_watched: boolean;
}

export function currentDefinitionOf(row: CurrentDefinitionRow): CurrentDefinition {
  const { version, lane, priority, overlap, limit_id: limitId, outcome_watched: outcomeWatched } = row;
  return { version, lane, priority, overlapGuarded: overlap !== 'allow', limitId, outcomeWatched };
}
