import {
  type DayCase,
  type Walk,
  beginOf,
  dayOf,
  firesOn,
  isKept,
  isOut,
  isPicked,
  nearest,
  walkOf,
} from './dates-oracle.ts';

/** What a user asks a schedule to do, from one edit of it to the next. */
export type Definition = Pick<
  DayCase,
  'expressions' | 'dates' | 'weekdays' | 'every' | 'pick' | 'onExcluded'
> & { namesCalendars: boolean };

export type Edit = { at: number } & (
  { definition: Definition } | { calendar: 0 | 1; dates: string[]; reachesLater: boolean }
);

/** A schedule from its creation to an end, and what is edited in between, in the order of time. */
export interface Story {
  zone: string;
  start: number;
  end: number;
  definition: Definition;
  /** What each calendar says from the beginning. */
  calendars: [string[], string[]];
  edits: Edit[];
}

/** Between two edits: all that judges dates stays as it is. */
interface Chapter {
  walk: Walk;
  /** After the one, up to and with the other. */
  after: number;
  until: number;
  isNewDefinition: boolean;
}

/**
 * The moments at which something fires in the whole story: of each date by itself, what is decided for it, and when.
 *
 * A date is decided as it begins, or earlier: with the first of its fires that is made ahead of it, or by an edit that moves one of them
 * to a moment that has passed. If it is moved then, its fires are settled for good. If it stays at home, it stays there, at the times of
 * the definition in force; an edit that would move it settles the rest of its fires at its own times. A date that was not to fire is not
 * moved by a later edit.
 */
export function firesOfStory(story: Story): Set<number> {
  const chapters = chaptersOf(story);
  const [first] = chapters;
  if (!first) throw new Error('a story has a chapter');
  const [from, to] = [dayOf(first.walk, story.start) - 34, dayOf(first.walk, story.end) + 34];
  const found = new Set<number>();
  for (let day = from; day <= to; day += 1)
    for (const at of firesOfDate(chapters, day)) if (at > story.start && at <= story.end) found.add(at);
  return found;
}

function chaptersOf({ zone, start, end, definition, calendars, edits }: Story): Chapter[] {
  const versions = calendars.map((dates) => [{ at: 0, dates }]);
  let present = definition;
  let since = start;
  const chapter = (after: number, until: number, isNewDefinition: boolean): Chapter => {
    const said = present.namesCalendars ? versions.map((ofOne) => [...ofOne]) : [];
    const walk = walkOf({ ...present, zone, from: -Infinity, since, versions: said });
    return { walk, after, until, isNewDefinition };
  };
  const chapters = [chapter(start, edits[0]?.at ?? end, true)];
  edits.forEach((edit, index) => {
    const isNewDefinition =
      'definition' in edit && JSON.stringify(edit.definition) !== JSON.stringify(present);
    if (isNewDefinition) [present, since] = [edit.definition, edit.at];
    else if ('calendar' in edit) versions[edit.calendar]?.push({ at: edit.at, dates: edit.dates });
    chapters.push(chapter(edit.at, edits[index + 1]?.at ?? end, isNewDefinition));
  });
  return chapters;
}

/** Whether each date is decided by itself, and then moved or not. */
const moves = ({ walk }: Chapter): boolean => walk.onExcluded !== 'skip';

function firesOfDate(chapters: readonly Chapter[], day: number): number[] {
  const found: number[] = [];
  let isAtHome = false;
  for (const [index, chapter] of chapters.entries()) {
    const { walk, after, until, isNewDefinition } = chapter;
    const before = chapters[index - 1];
    const ownFires = () => firesOn(walk, day, day, Infinity);
    const during = (fires: number[]) => fires.filter((at) => at > after && at <= until);
    if (!moves(chapter)) {
      found.push(...during(ownFires().filter((at) => stays(chapter, day, at))));
      continue;
    }
    const hasBegun = before !== undefined && beginOf(walk, day) <= after;
    if (hasBegun && !isNewDefinition) {
      if (isAtHome) found.push(...during(ownFires()));
      continue;
    }
    const to = isKept(walk, day) ? target(chapter, day) : day;
    if (hasBegun && to !== day) {
      const wasToFire = moves(before)
        ? isAtHome
        : firesOn(before.walk, day, day, Infinity).some((at) => stays(before, day, at));
      return wasToFire ? [...found, ...ownFires().filter((at) => at > after)] : found;
    }
    if (to !== day) {
      const fires = to === null ? [] : firesOn(walk, day, to, Infinity);
      const decidedAt = Math.min(beginOf(walk, day), to !== null && to < day ? Math.min(...fires) : Infinity);
      if (decidedAt <= until) return [...found, ...fires];
      continue;
    }
    isAtHome = isKept(walk, day) && beginOf(walk, day) <= until;
    if (isAtHome) found.push(...during(ownFires()));
  }
  return found;
}

function target({ walk, after }: Chapter, day: number): number | null {
  return nearest(walk, day, walk.onExcluded === 'next' ? 1 : -1, after + 1);
}

/** Where dates are not moved: whether a fire of a date is made. */
function stays({ walk }: Chapter, day: number, at: number): boolean {
  if (!isKept(walk, day)) return false;
  return walk.pick === null ? !isOut(walk, dayOf(walk, at), at) : isPicked(walk, day);
}
