import type { Instant } from '../instant.ts';
import type { CronTimes } from './cron-fires.ts';

/** Fires when any member does. If several fire at one moment, that is one fire. */
export function anyOf(members: readonly CronTimes[]): CronTimes {
  const known = members.map((times): Known => ({ times, asked: Infinity, next: null }));
  return {
    next: (after) => {
      let first: Instant | null = null;
      for (const member of known) {
        const next = nextOf(member, after);
        if (next !== null && (first === null || next < first)) first = next;
      }
      return first;
    },
    // Only a member that fires at this moment knows that the clocks moved it. In a repeated hour all members agree: the
    // zone decides.
    noteOf: (at) => {
      const notes = members.map((times) => times.noteOf(at));
      return notes.includes('moved by DST') ? 'moved by DST' : (notes[0] ?? null);
    },
  };
}

/** A member's last answer: its next fire after every moment from `asked` on, up to that fire. */
interface Known {
  times: CronTimes;
  asked: Instant;
  next: Instant | null;
}

/** In a walk from fire to fire, only the members that have just fired compute their next one. */
function nextOf(member: Known, after: Instant): Instant | null {
  const { asked, next } = member;
  if (after >= asked && (next === null || after < next)) return next;
  member.asked = after;
  return (member.next = member.times.next(after));
}
