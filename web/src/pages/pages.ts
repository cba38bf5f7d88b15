import type { ComponentType } from 'preact';
import type { PageName } from '../state/route.ts';
import type { Role } from '../state/session.ts';
import type { PageProps } from './page-props.ts';

interface Page {
  /** In the window's title. */
  title: string;
  /** In the navigation; absent: it is reached from elsewhere. */
  nav?: string;
  /** Who it is for; others do not find it in the navigation. Absent: for all. */
  role?: Role;
  load: () => Promise<ComponentType<PageProps>>;
}

/** The paths are in web/pages.json, where the daemon reads them too. */
export const PAGES: Record<PageName, Page> = {
  overview: {
    title: 'Overview',
    nav: 'Overview',
    load: async () => (await import('./overview/overview.tsx')).Overview,
  },
  schedules: {
    title: 'Schedules',
    nav: 'Schedules',
    load: async () => (await import('./schedules/schedules.tsx')).Schedules,
  },
  newSchedule: {
    title: 'New schedule',
    load: async () => (await import('./schedule-form/new-schedule.tsx')).NewSchedule,
  },
  schedule: {
    title: 'Schedule',
    load: async () => (await import('./schedule/schedule.tsx')).SchedulePage,
  },
  editSchedule: {
    title: 'Edit schedule',
    load: async () => (await import('./schedule-form/edit-schedule.tsx')).EditSchedule,
  },
  runs: { title: 'Runs', nav: 'Runs', load: async () => (await import('./runs/runs.tsx')).Runs },
  run: { title: 'Run', load: async () => (await import('./run/run.tsx')).RunPage },
  load: { title: 'Load', nav: 'Load', load: async () => (await import('./load/load.tsx')).LoadPage },
  calendars: {
    title: 'Calendars',
    nav: 'Calendars',
    load: async () => (await import('./calendars/calendars.tsx')).Calendars,
  },
  limits: {
    title: 'Limits',
    nav: 'Limits',
    load: async () => (await import('./limits/limits.tsx')).Limits,
  },
  maintenance: {
    title: 'Maintenance',
    nav: 'Maintenance',
    load: async () => (await import('./maintenance/maintenance.tsx')).MaintenancePage,
  },
  audit: {
    title: 'Audit',
    nav: 'Audit',
    role: 'operator',
    load: async () => (await import('./audit/audit.tsx')).Audit,
  },
};
