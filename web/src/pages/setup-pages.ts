import { Audit } from './audit/audit.tsx';
import { Calendars } from './calendars/calendars.tsx';
import { Connections } from './connections/connections.tsx';
import { Limits } from './limits/limits.tsx';
import { LoadPage } from './load/load.tsx';
import { MaintenancePage } from './maintenance/maintenance.tsx';
import { Notifiers } from './notifiers/notifiers.tsx';
import type { ShownPage } from './page-props.ts';

export type SetupName = 'load' | 'calendars' | 'limits' | 'connections' | 'notifiers' | 'maintenance' | 'audit';

/** What is set up or looked at now and then: loaded together, when one of them is opened. */
export const SETUP_PAGES: Record<SetupName, ShownPage> = {
  load: LoadPage,
  calendars: Calendars,
  limits: Limits,
  connections: Connections,
  notifiers: Notifiers,
  maintenance: MaintenancePage,
  audit: Audit,
};
