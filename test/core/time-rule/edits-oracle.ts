import {
  type DayCase,
  dateBegunBy,
  datesOfPeriod,
  isKept,
  isOut,
  isPicked,
  nearest,
  pickedBy,
} from './dates-oracle.ts';
import { type Walk, beginOf, dayOf, firesOn, walkOf } from './walked-dates.ts';

/** What a user asks a schedule to do, from one edit of it to the next. */
export type Definition = Pick<DayCase, 'expressions' | 'dates' | 'weekdays' | 'every' | 'pick' | 'onExcluded'> & {
  namesCalendars: boolean;
};

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

/** What was decided for a date. */
interface Decision {
  /** The date on which it is made; null: it is not, or no more. */
  to: number | null;
  /** Some of its fires were made. */
  isMade: boolean;
  /** It was picked by an edit once it had begun. */
  isLate: boolean;
}

interface Played {
  story: Story;
  days: number[];
  decided: Map<number, Decision>;
  fired: Set<number>;
}

/**
 * The moments at which something fires in the whole story, from edit to edit.
 *
 * A date is decided as it begins, or earlier: with the first of its fires that is made ahead of it, or by an edit that moves one of them
 * to a moment that has passed. An edit of a calendar does not change that. An edit of the definition leaves it where it is: what lies ahead
 * is made at the new times, and nothing if all was made.
 */
export function firesOfStory(story: Story): Set<number> {
  const chapters = chaptersOf(story);
  const [{ walk }] = chapters as [Chapter];
  const [from, to] = [dayOf(walk, story.start) - 34, dayOf(walk, story.end) + 34];
  const days = Array.from({ length: to - from }, (_, index) => from + index);
  const played: Played = { story, days, decided: new Map(), fired: new Set() };
  chapters.forEach((chapter, index) => {
    const before = chapters[index - 1];
    if (before) edit(played, before, chapter);
    for (const day of days) play(played, chapter, day);
  });
  return new Set([...played.fired].filter((at) => at > story.start && at <= story.end));
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
    const isNewDefinition = 'definition' in edit && JSON.stringify(edit.definition) !== JSON.stringify(present);
    if (isNewDefinition) [present, since] = [edit.definition, edit.at];
    else if ('calendar' in edit) versions[edit.calendar]?.push({ at: edit.at, dates: edit.dates });
    chapters.push(chapter(edit.at, edits[index + 1]?.at ?? end, isNewDefinition));
  });
  return chapters;
}

const hasRule = ({ walk }: Chapter): boolean => walk.onExcluded !== 'skip' || walk.pick !== null;

function play({ decided, fired }: Played, chapter: Chapter, day: number): void {
  const { walk, after, until } = chapter;
  let decision = decided.get(day);
  if (!decision && !hasRule(chapter)) {
    for (const at of firesAtHome(chapter, day)) if (at > after && at <= until) fired.add(at);
    return;
  }
  let since = after;
  if (!decision) {
    const to = targetOf(chapter, day);
    const ahead = to !== null && to < day ? Math.min(...firesOn(walk, day, to, Infinity)) : Infinity;
    if (Math.min(beginOf(walk, day), ahead) > until) return;
    // By an edit that moves it to a moment that has passed, or as the schedule is new, which has nothing to make up for.
    if (ahead <= after) since = -Infinity;
    decision = { to, isMade: false, isLate: false };
    decided.set(day, decision);
  }
  for (const at of firesOf(walk, day, decision.to)) {
    if (at <= since || at > until) continue;
    decision.isMade = true;
    fired.add(at);
  }
}

function edit(played: Played, before: Chapter, chapter: Chapter): void {
  const { days, decided } = played;
  const chosen = new Set(days.filter((day) => firesBefore(played, before, day).length > 0));
  for (const [day, { isLate }] of decided) if (isLate) chosen.delete(day);
  if (chapter.isNewDefinition) for (const day of days) keep(played, before, chapter, day);
  if (chapter.walk.pick !== null) saveThePeriod(played, chapter, chosen);
}

/** The fires of a date by what was decided before an edit. */
function firesBefore({ decided }: Played, before: Chapter, day: number): number[] {
  const decision = decided.get(day);
  if (decision) return firesOf(before.walk, day, decision.to);
  return hasRule(before) ? [] : firesAtHome(before, day);
}

function keep(played: Played, before: Chapter, chapter: Chapter, day: number): void {
  const { decided, fired } = played;
  const { walk, after } = chapter;
  const decision = decided.get(day);
  const isPlain = !hasRule(before) && !hasRule(chapter);
  if (!decision && (isPlain || beginOf(walk, day) > after)) return;
  const fires = firesBefore(played, before, day);
  const isMade = decision?.isMade ?? fires.some((at) => at <= after && fired.has(at));
  const isOver = fires.length === 0 || (isMade && fires.every((at) => at <= after));
  const isDecidedAnew = decision?.isLate === true && walk.pick !== null;
  const to = isOver || isDecidedAnew ? null : (decision?.to ?? day);
  decided.set(day, { to, isMade, isLate: isDecidedAnew });
  if (hasRule(chapter) || beginOf(walk, day) > after) return;
  // What such a definition makes of a date that has begun, it makes by its own rule.
  const ahead = (some: number[]) => JSON.stringify(some.filter((at) => at > after).sort((a, b) => a - b));
  if (ahead(firesOf(walk, day, to)) === ahead(firesAtHome(chapter, day))) decided.delete(day);
}

/** Where the period of today has had no fire, and has none ahead: its dates up to today that are picked now, and were not before. */
function saveThePeriod({ decided, fired }: Played, { walk, after }: Chapter, chosen: Set<number>): void {
  const today = dateBegunBy(walk, after);
  const dates = datesOfPeriod(walk.pick?.of ?? 'week', today);
  const [begins, ends] = [beginOf(walk, dates[0] ?? 0), beginOf(walk, (dates.at(-1) ?? 0) + 1)];
  const isIn = (at: number) => at >= begins && at < ends;
  const ofToday = decided.get(today);
  const isServed =
    [...fired].some((at) => isIn(at) && at <= after) ||
    [...decided].some(
      ([day, { to, isLate }]) => !isLate && firesOf(walk, day, to).some((at) => at > after && isIn(at)),
    );
  const now = pickedBy(walk, today, after + 1);
  if (ofToday?.isLate) decided.set(today, { ...ofToday, to: null });
  if (now.some((day) => day > today && !decided.has(day))) return;
  for (const day of now) {
    const goesOn = day === today && ofToday?.isLate === true && ofToday.isMade;
    if (day > today || chosen.has(day) || (isServed && !goesOn)) continue;
    const fires = firesOf(walk, day, day);
    for (const at of fires) if (at <= after) fired.add(at);
    const isMade = fires.some((at) => at <= after) || goesOn;
    if (day === today) decided.set(day, { to: today, isMade, isLate: true });
  }
}

/** By the expressions that select it, else by all. */
function firesOf(walk: Walk, day: number, to: number | null): number[] {
  if (to === null) return [];
  const isSelected = walk.selections.some((one) => one.day(day));
  const selections = walk.selections.map((one) => ({ ...one, day: () => true }));
  return firesOn(isSelected ? walk : { ...walk, selections }, day, to, Infinity);
}

function targetOf({ walk, after }: Chapter, day: number): number | null {
  if (!isKept(walk, day)) return null;
  if (walk.pick !== null) return isPicked(walk, day) ? day : null;
  return nearest(walk, day, walk.onExcluded === 'next' ? 1 : -1, after + 1);
}

/** Where each fire is judged at its own moment. */
function firesAtHome({ walk }: Chapter, day: number): number[] {
  if (!isKept(walk, day)) return [];
  return firesOn(walk, day, day, Infinity).filter((at) => !isOut(walk, dayOf(walk, at), at));
}
