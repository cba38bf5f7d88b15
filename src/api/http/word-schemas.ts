import { z } from 'zod';
import { RUN_STATUSES, RUN_TRIGGERS } from '../../core/runs/run.ts';
import { BOUNDS } from '../../core/schedules/expect.ts';
import { SCHEDULE_STATUSES } from '../../core/schedules/schedule.ts';

// Words that several answers and filters share: by their names, they are one type in a client.
export const runStatus = z.enum(RUN_STATUSES).meta({ id: 'RunStatus' });
export const runTrigger = z.enum(RUN_TRIGGERS).meta({ id: 'RunTrigger' });
export const scheduleStatus = z.enum(SCHEDULE_STATUSES).meta({ id: 'ScheduleStatus' });
export const expectBound = z.enum(BOUNDS).meta({ id: 'Bound' });
