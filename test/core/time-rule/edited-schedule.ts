import { type Calendars, daySetOfEntries } from '../../../src/core/exclusions/exclusion.ts';
import { cursorByCalendars } from '../../../src/core/time/cursors.ts';
import { owedByCalendars } from '../../../src/core/days/decided-dates.ts';
import { cursorUnder, withDatesKept } from '../../../src/core/time/definition-change.ts';
import type { Definition as Stored } from '../../../src/core/schedules/schedule.ts';
import { readTiming, timingText } from '../../../src/core/schedules/stored-definition.ts';
import { fireTimes } from '../../../src/core/time/fire-times.ts';
import { walkDue } from '../../../src/core/time/plan-due.ts';
import { definitionOf } from '../../support/pipeline.ts';
import { timingOfDays } from './day-cases.ts';
import type { Definition, Edit, Story } from './edits-oracle.ts';

/** What has fired at the end of a story, by the functions that the planner and the edits call. */
export function playStory(story: Story): Set<number> {
  const schedule = new EditedSchedule(story);
  for (const edit of story.edits) schedule.apply(edit);
  schedule.plan(story.end);
  return schedule.fired;
}

const CATCHING_UP = { catchUp: 'all', catchUpLimit: 1_000_000, graceSeconds: 0 } as const;

/** A schedule's row, its calendars, and its runs. */
class EditedSchedule {
  readonly fired = new Set<number>();
  readonly #identity;
  readonly #zone: string;
  #definition: Stored;
  #versions: { version: number; at: number; dates: string[] }[][];
  /** The first edit of a calendar that the cursor does not follow yet. */
  #unappliedSince: number | null = null;
  #updatedAt: number;
  #cursor: number | null;
  #plannedThrough: number | null = null;

  constructor({ zone, start, definition, calendars }: Story) {
    this.#zone = zone;
    this.#identity = { id: 'edited', createdAt: start };
    this.#versions = calendars.map((dates) => [{ version: 1, at: 0, dates }]);
    this.#updatedAt = start;
    this.#definition = this.#stored(definition);
    this.#cursor = cursorUnder(this.#definition, null, this.#identity, start, this.#calendars()).nextOccurrenceAt;
  }

  apply(edit: Edit): void {
    if ('definition' in edit) this.#edit(edit.definition, edit.at);
    else {
      const ofOne = this.#versions[edit.calendar] ?? [];
      ofOne.push({ version: ofOne.length + 1, at: edit.at, dates: edit.dates });
      this.#unappliedSince ??= edit.at;
      if (!edit.reachesLater) this.#follow(edit.at);
    }
  }

  /** As the tick does, late or in time. */
  plan(now: number): void {
    if (this.#unappliedSince !== null) this.#follow(now);
    const { horizon, plannedThrough } = { horizon: -Infinity, plannedThrough: this.#plannedThrough };
    const walk = walkDue(this.#times(), CATCHING_UP, this.#cursor, { now, horizon, plannedThrough });
    for (let plan = walk.step(() => true); plan; plan = plan.isPartial ? walk.step(() => true) : null) {
      for (const { scheduledFor } of plan.fires) this.#record(scheduledFor);
      this.#cursor = plan.nextOccurrenceAt;
      this.#plannedThrough = plan.fires.at(-1)?.scheduledFor ?? this.#plannedThrough;
    }
  }

  #edit(given: Definition, now: number): void {
    const before = this.#definition;
    const { definition, owed } = withDatesKept(
      this.#stored(given),
      { ...this.#identity, definition: before, ...this.#planned() },
      now,
      this.#calendars(),
    );
    const owedBefore = this.#owed(now);
    this.plan(now);
    for (const at of new Set([...owedBefore, ...owed])) this.#recordUnlessMade(at);
    const state = { definition: before, nextOccurrenceAt: this.#cursor };
    this.#cursor = cursorUnder(definition, state, this.#identity, now, this.#calendars()).nextOccurrenceAt;
    this.#definition = { ...definition, ...readTiming(timingText(definition)) };
    this.#updatedAt = now;
  }

  /** As the calendar watch does. */
  #follow(now: number): void {
    const owed = this.#owed(now);
    this.#cursor = cursorByCalendars(this.#times(), this.#planned(), this.#unappliedSince ?? now);
    const passed = owed.filter((at) => this.#cursor === null || at < this.#cursor);
    for (const at of passed) this.#recordUnlessMade(at);
    this.#unappliedSince = null;
  }

  #planned() {
    const [nextOccurrenceAt, plannedThrough] = [this.#cursor, this.#plannedThrough];
    return { nextOccurrenceAt, plannedThrough, updatedAt: this.#updatedAt };
  }

  #owed(now: number): number[] {
    const editedAt = this.#unappliedSince;
    if (editedAt === null) return [];
    return owedByCalendars(this.#definition, this.#identity, this.#calendars(), { editedAt, now });
  }

  #record(at: number): void {
    if (this.fired.has(at)) throw new Error(`it fires twice for ${new Date(at).toISOString()}`);
    this.fired.add(at);
  }

  /** As the database does that knows its runs. */
  #recordUnlessMade(at: number): void {
    if (this.fired.has(at)) return;
    this.#record(at);
    this.#plannedThrough = Math.max(at, this.#plannedThrough ?? at);
  }

  #times() {
    return fireTimes(this.#definition, this.#identity, this.#calendars());
  }

  #calendars(): Calendars {
    return new Map(
      this.#versions.map((ofOne, index) => [
        String(index),
        {
          id: String(index),
          versions: ofOne.map(({ version, at, dates }) => ({ version, at, days: daySetOfEntries(dates) })),
        },
      ]),
    );
  }

  #stored({ namesCalendars, ...rule }: Definition): Stored {
    const timing = timingOfDays({ ...rule, zone: this.#zone, from: 0, since: 0, versions: [] });
    const { dates = [], weekdays = [] } = timing.exclude ?? {};
    const isEmpty = !namesCalendars && dates.length + weekdays.length === 0;
    const exclude = isEmpty ? null : { dates, weekdays, calendars: namesCalendars ? ['0', '1'] : [] };
    return definitionOf({ url: 'http://127.0.0.1/', ...timing, exclude });
  }
}
