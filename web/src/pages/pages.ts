import type { PageName } from '../state/route.ts';
import type { Role } from '../state/session.ts';
import type { ShownPage } from './page-props.ts';
import type { FormName } from './form-pages.ts';
import type { SetupName } from './setup-pages.ts';
import { Overview } from './overview/overview.tsx';
import { Schedules } from './schedules/schedules.tsx';
import { SchedulePage } from './schedule/schedule.tsx';
import { Runs } from './runs/runs.tsx';
import { RunPage } from './run/run.tsx';
import { Alerts } from './alerts/alerts.tsx';

interface Page {
  /** In the window's title. */
  title: string;
  /** In the navigation; absent: it is reached from elsewhere. */
  nav?: string;
  /** In the navigation, below the one entry of what is set up now and then. */
  isSetup?: true;
  /** Who it is for; others do not find it in the navigation. Absent: for all. */
  role?: Role;
  show: ShownPage | LaterPage;
}

/** A page that is seldom opened: loaded when it is, with those like it. */
export interface LaterPage {
  load: () => Promise<ShownPage>;
}

function form(name: FormName): LaterPage {
  return { load: async () => (await import('./form-pages.ts')).FORM_PAGES[name] };
}

function setup(name: SetupName): LaterPage {
  return { load: async () => (await import('./setup-pages.ts')).SETUP_PAGES[name] };
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
    show: form('newSchedule'),
  },
  schedule: {
    title: 'Schedule',
    show: SchedulePage,
  },
  editSchedule: {
    title: 'Edit schedule',
    show: form('editSchedule'),
  },
  runs: { title: 'Runs', nav: 'Runs', show: Runs },
  run: { title: 'Run', show: RunPage },
  alerts: { title: 'Alerts', nav: 'Alerts', show: Alerts },
  load: { title: 'Load', nav: 'Load', show: setup('load') },
  calendars: {
    title: 'Calendars',
    nav: 'Calendars',
    isSetup: true,
    show: setup('calendars'),
  },
  limits: {
    title: 'Limits',
    nav: 'Limits',
    isSetup: true,
    show: setup('limits'),
  },
  connections: {
    title: 'Connections',
    nav: 'Connections',
    isSetup: true,
    show: setup('connections'),
  },
  notifiers: {
    title: 'Notifiers',
    nav: 'Notifiers',
    isSetup: true,
    show: setup('notifiers'),
  },
  maintenance: {
    title: 'Maintenance',
    nav: 'Maintenance',
    isSetup: true,
    show: setup('maintenance'),
  },
  audit: {
    title: 'Audit',
    nav: 'Audit',
    isSetup: true,
    role: 'operator',
    show: setup('audit'),
  },
};
