import type { ComponentType } from 'preact';
import type { PageName } from '../state/route.ts';
import type { Role } from '../state/session.ts';
import type { PageProps } from './page-props.ts';
import { Overview } from './overview/overview.tsx';
import { Schedules } from './schedules/schedules.tsx';
import { NewSchedule } from './schedule-form/new-schedule.tsx';
import { SchedulePage } from './schedule/schedule.tsx';
import { EditSchedule } from './schedule-form/edit-schedule.tsx';
import { Runs } from './runs/runs.tsx';
import { RunPage } from './run/run.tsx';
import { Alerts } from './alerts/alerts.tsx';
import { LoadPage } from './load/load.tsx';
import { Calendars } from './calendars/calendars.tsx';
import { Limits } from './limits/limits.tsx';
import { Connections } from './connections/connections.tsx';
import { Notifiers } from './notifiers/notifiers.tsx';
import { MaintenancePage } from './maintenance/maintenance.tsx';
import { Audit } from './audit/audit.tsx';

interface Page {
  /** In the window's title. */
  title: string;
  /** In the navigation; absent: it is reached from elsewhere. */
  nav?: string;
  /** In the navigation, below the one entry of what is set up now and then. */
  isSetup?: true;
  /** Who it is for; others do not find it in the navigation. Absent: for all. */
  role?: Role;
  show: ComponentType<PageProps>;
}

/** The paths are in web/pages.json, where the daemon reads them too. */
export const PAGES: Record<PageName, Page> = {
  overview: {
    title: 'Overview',
    nav: 'Overview',
    show: Overview,
  },
  schedules: {
    title: 'Schedules',
    nav: 'Schedules',
    show: Schedules,
  },
  newSchedule: {
    title: 'New schedule',
    show: NewSchedule,
  },
  schedule: {
    title: 'Schedule',
    show: SchedulePage,
  },
  editSchedule: {
    title: 'Edit schedule',
    show: EditSchedule,
  },
  runs: { title: 'Runs', nav: 'Runs', show: Runs },
  run: { title: 'Run', show: RunPage },
  alerts: { title: 'Alerts', nav: 'Alerts', show: Alerts },
  load: { title: 'Load', nav: 'Load', show: LoadPage },
  calendars: {
    title: 'Calendars',
    nav: 'Calendars',
    isSetup: true,
    show: Calendars,
  },
  limits: {
    title: 'Limits',
    nav: 'Limits',
    isSetup: true,
    show: Limits,
  },
  connections: {
    title: 'Connections',
    nav: 'Connections',
    isSetup: true,
    show: Connections,
  },
  notifiers: {
    title: 'Notifiers',
    nav: 'Notifiers',
    isSetup: true,
    show: Notifiers,
  },
  maintenance: {
    title: 'Maintenance',
    nav: 'Maintenance',
    isSetup: true,
    show: MaintenancePage,
  },
  audit: {
    title: 'Audit',
    nav: 'Audit',
    isSetup: true,
    role: 'operator',
    show: Audit,
  },
};
