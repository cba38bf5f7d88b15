/** A step of the rule of days that is broken on purpose, and the test that fails then. */
export interface DayMutant {
  name: string;
  file: string;
  find: string;
  replace: string;
  /** A file of tests, and the end of the name of one of them. */
  caughtBy: { file: string; test: string };
}

const STEPS = 'test/core/days/day-steps.test.ts';
const KEPT = 'test/core/days/kept-dates.test.ts';
const EDITS = '../time/kept-dates';

const broken = (
  name: string,
  file: string,
  [find, replace]: [string, string],
  [test, inFile = STEPS]: [string, string?],
): DayMutant => ({
  ...{ name, find, replace },
  file: `src/core/days/${file}.ts`,
  caughtBy: { file: inFile, test },
});

export const DAY_MUTANTS: readonly DayMutant[] = [
  broken(
    'select',
    'moved-days',
    ['localTimes.filter(({ days }) => nextDay(days, day) === day)', 'localTimes.filter(() => day > 0)'],
    ['of several expressions, any selects a date, and a moved date has the times of those that select it'],
  ),
  broken(
    'every',
    'pick-days',
    ['return past === 0 ? day :', 'return past < n ? day :'],
    ['a period that is not a multiple of n after the first one has no date'],
  ),
  broken('every-from', 'pick-days', ['Math.max(asked, first)', 'asked'], ['and no date lies before the first one']),
  broken(
    'exclude',
    'pick-days',
    ['    if (versions.has(version, day)) return;\n', ''],
    ['excluded dates drop out before the others are numbered'],
  ),
  broken(
    'pick',
    'pick-days',
    ['nth.includes(-after)', 'nth.includes(after)'],
    ['the n-th dates of a period stay, and a period that has fewer has none'],
  ),
  broken(
    'move',
    'day-times',
    ["const direction = onExcluded === 'next' ? 1 : -1;", 'const direction = 1;'],
    ['the fires of an excluded date go to the nearest one in their direction'],
  ),
  broken(
    'move-from-the-whole-run',
    'moved-days',
    ['freeFrom(moving, version, day - 1, -1) + 1', 'day - 1'],
    ['fires go 31 days far, and no further'],
  ),
  broken(
    'coincide-once',
    'decided-dates',
    ['[...new Set([...lists].flat())]', '[...lists].flat()'],
    ['and fires of several dates that the edit moves to one moment are owed once', KEPT],
  ),
  broken(
    'bound-of-31-days',
    'moved-days',
    ['Math.abs(to - day) <= MAX_MOVE_DAYS', 'Math.abs(to - day) < MAX_MOVE_DAYS'],
    ['fires go 31 days far, and no further'],
  ),
  broken(
    'no-bound',
    'moved-days',
    ['export const MAX_MOVE_DAYS = 31;', 'export const MAX_MOVE_DAYS = 32;'],
    ['fires go 31 days far, and no further'],
  ),
  broken(
    'kept-decisions-fire-again',
    'day-times',
    ['kept === undefined ? [] : [closedDays(kept)]', 'kept === undefined || kept.since > 0 ? [] : [closedDays(kept)]'],
    ['where its fire was moved ahead of it and made, and the new one excludes nothing', KEPT],
  ),
  broken(
    'kept-decisions-are-lost',
    EDITS,
    ['reason, fires: inSeries(left)', 'reason, fires: begins < now ? [] : inSeries(left)'],
    ['where it waits for a later day, and the new one excludes nothing', KEPT],
  ),
  broken(
    'judged-by-the-newest-calendar',
    'local-dates',
    [
      'Math.max(versions.indexAt(at), firstVersion)',
      'Math.max(versions.indexAt(at), firstVersion, versions.indexAt(Infinity))',
    ],
    ['where it waits for a later day: the date is not excluded after all', KEPT],
  ),
  broken(
    'decided-only-as-it-begins',
    'moved-days',
    ['if (made <= versions.endOf(version))', 'if (begins <= versions.endOf(version) && made > 0)'],
    ['where its fire was moved ahead of it and made', KEPT],
  ),
  broken(
    'today-is-decided-anew',
    EDITS,
    ['if (begins > now &&', 'if (begins > now - 86_400_000 &&'],
    ['and is to fire yet: a new rule does not move that to a day that has passed', KEPT],
  ),
  broken(
    'today-is-picked-anew',
    EDITS,
    ['if (begins > now &&', 'if (begins > now - 86_400_000 &&'],
    ['that has begun is left by an edit to another pick', KEPT],
  ),
  broken(
    'waits-at-the-old-time',
    EDITS,
    [': ahead(anew);', ': ahead(fires);'],
    ['and the new one has another time, at which it is made', KEPT],
  ),
  broken(
    'made-again-at-another-time',
    EDITS,
    ['(hasBegun && ahead(fires).length === 0)', '(!hasBegun && now === 0)'],
    ['has the times of day of the definition in force, and is not made again at another one', KEPT],
  ),
  broken(
    'forgotten-by-the-next-edit',
    EDITS,
    ['after !== null && !isOver;', 'after !== null && !isOver && now === 0;'],
    ['that was not to fire is not made by the edit after the next one either', KEPT],
  ),
  ...(['calendar', 'definition'] as const).flatMap((edit) => {
    const inFile = edit === 'calendar' ? 'kept-fires' : EDITS;
    const breaking = (name: string, change: Record<typeof edit, [string, string]>, test: string) =>
      broken(`${edit}-${name}`, inFile, change[edit], [`of the ${edit}: ${test}`, KEPT]);
    return [
      breaking(
        'loses-the-period',
        {
          calendar: ['owed: [...owed, { after: made, at }]', 'owed'],
          definition: ['    passed.add(firesOf(day));\n', ''],
        },
        'where its time has passed, or the day has: it is owed',
      ),
      breaking(
        'loses-today',
        {
          calendar: ['for (const day of days) {', 'for (const day of days.filter((one) => one < today)) {'],
          definition: ['    if (day === today) dates.set(', '    if (day < today) dates.set('],
        },
        'where the day that is picked now is today, and its time lies ahead: it is made then',
      ),
      breaking(
        'makes-a-second-fire',
        {
          calendar: ['if (regular.some((day) => day <= today && hasFire(day))) break;', ''],
          definition: ['if (isServed && ', 'if (isServed && now === 0 && '],
        },
        'unless the period has had a fire, or has one ahead',
      ),
      breaking(
        'cannot-be-undone',
        {
          calendar: ['day < today ? Infinity : until', 'Infinity'],
          definition: ['  if (isLate && pick !== null) return [];\n', ''],
        },
        'an undo takes it back before it is made, and owes nothing after that',
      ),
    ];
  }),
  broken(
    'made-before-it-was-in-force',
    EDITS,
    ['at > since && oldTimes.next(at - 1) === at', 'since > 0 && oldTimes.next(at - 1) === at'],
    ['also to a moment of the definition before, at which that was not in force yet', KEPT],
  ),
];
