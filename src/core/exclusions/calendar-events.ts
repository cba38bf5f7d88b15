/** What happens to calendars, and to the next fires of the schedules that name them. */
export type CalendarEvent =
  | {
      type: 'calendarWritten';
      calendarId: string;
      change: 'created' | 'updated' | 'deleted';
      version: number;
    }
  /**
   * The next fires of all users follow this version of a calendar: the number of schedules, and how many of their next
   * fires moved.
   */
  | { type: 'nextFiresMoved'; calendarId: string; version: number; schedules: number; moved: number }
  /**
   * Next fires could not be moved after an edit of a calendar; the daemon tries again until it works. With a schedule: its next fire
   * only, which holds up no other.
   */
  | { type: 'nextFiresNotMoved'; calendarId: string; scheduleId: string | null; error: unknown };
