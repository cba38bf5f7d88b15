import { QueryTimeout } from './errors.ts';

/** The time that a piece of work has. */
export interface Deadline {
  /** Rejects when the time is up. */
  expired: Promise<never>;
  isOver(): boolean;
  clear(): void;
}

export function deadline(limitMs: number): Deadline {
  let inTime = true;
  let timer: NodeJS.Timeout | undefined;
  const expired = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      inTime = false;
      reject(new QueryTimeout(limitMs));
    }, limitMs);
  });
  return {
    expired,
    isOver: () => !inTime,
    clear: () => clearTimeout(timer),
  };
}
