import type { KeeperMessage } from './keeper-messages.ts';

interface Line {
  instanceId?: unknown;
  /** The one it had before it was declared dead. */
  previousId?: unknown;
  instanceIds?: unknown;
  msg?: unknown;
}

/** What the demo wants to know of a line that an instance has logged; null: nothing. */
export function messageOfLine(number: number, line: string): KeeperMessage | null {
  // Most lines are about requests, and are not worth parsing.
  if (!line.includes('declared') && !line.includes('registered')) return null;
  const { instanceId, previousId, instanceIds, msg } = parsed(line);
  if (Array.isArray(instanceIds)) return { type: 'declaredDead', instanceIds: instanceIds.map(String) };
  const isNew = msg === 'registered as an instance' || previousId !== undefined;
  return isNew && typeof instanceId === 'string' ? { type: 'registered', number, instanceId } : null;
}

function parsed(line: string): Line {
  try {
    return JSON.parse(line) as Line;
  } catch {
    return {};
  }
}
