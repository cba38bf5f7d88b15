import { EditSchedule } from './schedule-form/edit-schedule.tsx';
import { NewSchedule } from './schedule-form/new-schedule.tsx';
import type { ShownPage } from './page-props.ts';

export type FormName = 'newSchedule' | 'editSchedule';

/** Loaded together, when one of them is opened. */
export const FORM_PAGES: Record<FormName, ShownPage> = {
  newSchedule: NewSchedule,
  editSchedule: EditSchedule,
};
