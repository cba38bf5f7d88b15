import { ApiProblem, call, get } from '../api/http.ts';
import type {
  ListRunsResponse,
  ListSchedulesResponse,
  WholeRun,
} from '../../../clients/typescript/src/generated/types.gen.ts';
import { findSchedules } from '../api/schedules.ts';
import { PAGES } from '../pages/pages.ts';
import { underWaySince } from '../parts/under-way.ts';
import pages from '../../pages.json';
import { type PageName, goTo, href, pageAt } from '../state/route.ts';
import { type Role, may, scope } from '../state/session.ts';
import { shownZone, timeText } from '../state/zone.ts';
import { type Find, go } from './find.ts';
import { callPath, pagePath } from '../state/schedule-paths.ts';

export interface Answer {
  finds: readonly Find[];
  /** Why the daemon refused a part of it. */
  problem: string | null;
}

const SCHEDULES = 8;
const RUNS = 3;
const MAX_KEY = 256;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Of places of the dashboard, without asking anybody. */
export function placesFor(typed: string): Find[] {
  const wanted = typed.trim().toLowerCase();
  const named = (Object.keys(PAGES) as PageName[])
    .filter((name) => isOffered(PAGES[name]))
    .map((name): Find => go('page', PAGES[name].title, href(pages[name])));
  return [...named, ...general()].filter(({ text }) => text.toLowerCase().includes(wanted));
}

function isOffered({ nav, role }: (typeof PAGES)[PageName]): boolean {
  return nav !== undefined && (role === undefined || may(role));
}

/** Actions that need no schedule. */
function general(): Find[] {
  if (!may('admin')) return [];
  const makes = pageAt('/schedules/new')?.name === ('newSchedule' as string);
  return [
    ...(makes ? [go('action', 'New schedule', href('/schedules/new'))] : []),
    ...(scope.value === null ? [go('action', 'Turn maintenance on or off', href('/maintenance'))] : []),
  ];
}

/** What the daemon knows. `fire X` and the like find actions on schedules instead. */
export async function ask(typed: string, signal: AbortSignal): Promise<Answer> {
  const text = typed.trim();
  if (text === '') return { finds: [], problem: null };
  const [, verb = '', rest = ''] = /^(\w+)\s+(.+)$/.exec(text) ?? [];
  const command = COMMANDS.find(({ name, role }) => name === verb.toLowerCase() && may(role));
  const parts = command
    ? [schedules(rest, signal, command)]
    : [schedules(text, signal), byLabel(text, signal), byId(text, signal), byKey(text, signal)];
  const settled = await Promise.allSettled(parts);
  const found = settled.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
  const problem = settled.find((one) => one.status === 'rejected')?.reason as unknown;
  const unique = new Map(found.map((find) => [find.key, find]));
  return { finds: [...unique.values()], problem: problem instanceof Error ? problem.message : null };
}

async function schedules(q: string, signal: AbortSignal, command?: Command): Promise<Find[]> {
  const { items } = await findSchedules({ q, limit: SCHEDULES }, signal);
  return finds(items, q, command);
}

/** Whole labels, as `key:value`, of any schedule. */
async function byLabel(text: string, signal: AbortSignal): Promise<Find[]> {
  if (!/^[^:]+:./.test(text)) return [];
  const { items } = await findSchedules({ label: text, limit: 1 }, signal);
  return items.length === 0 ? [] : labelFinds(text);
}

async function byId(text: string, signal: AbortSignal): Promise<Find[]> {
  if (!UUID.test(text)) return [];
  try {
    return [runFind(await get<WholeRun>(`/runs/${text}`, {}, signal))];
  } catch (error) {
    if (error instanceof ApiProblem && error.status === 404) return [];
    throw error;
  }
}

async function byKey(key: string, signal: AbortSignal): Promise<Find[]> {
  if (key.length > MAX_KEY) return [];
  const { items } = await get<ListRunsResponse>('/runs', { key, limit: RUNS }, signal);
  return items.map((run) => ({ ...runFind(run), text: `Run with the key ${key}` }));
}

type FoundRun = Pick<WholeRun, 'id' | 'scheduleId' | 'notifierId' | 'status' | 'claimedAt'>;

function runFind(run: FoundRun): Find {
  const { id, scheduleId, notifierId, status } = run;
  const since = underWaySince(run);
  const underWay = since === null ? '' : ` under way since ${timeText(since, shownZone(null))}`;
  return go(
    'run',
    notifierId === null ? `Run of ${scheduleId ?? 'a task asked for once'}` : `Message of the notifier ${notifierId}`,
    href(`/runs/${id}`),
    `${status}${underWay}, ${id}`,
  );
}

type Schedule = ListSchedulesResponse['items'][number];

/** What can be typed before a schedule. */
interface Command {
  name: string;
  verb: string;
  role: Role;
  fits: (schedule: Schedule) => boolean;
  act: (id: string) => Promise<string>;
}

const COMMANDS: readonly Command[] = [
  {
    name: 'fire',
    verb: 'Fire',
    role: 'operator',
    fits: () => true,
    act: async (id) => {
      const run = await call<{ id: string }>('POST', callPath(id, '/fire'));
      goTo(href(`/runs/${run.id}`));
      return `${id} is fired: this is its run.`;
    },
  },
  {
    name: 'pause',
    verb: 'Pause',
    role: 'admin',
    fits: ({ enabled }) => enabled,
    act: async (id) => {
      await call('PATCH', callPath(id), { body: { enabled: false } });
      return `${id} is paused.`;
    },
  },
  {
    name: 'resume',
    verb: 'Resume',
    role: 'admin',
    fits: ({ enabled }) => !enabled,
    act: async (id) => {
      await call('PATCH', callPath(id), { body: { enabled: true } });
      return `${id} is resumed.`;
    },
  },
];

const LABELS = 4;

/** The schedules themselves, and those of their labels in which the text is; or a command on each of them. */
function finds(items: readonly Schedule[], text: string, command?: Command): Find[] {
  if (command) return items.filter(command.fits).map(({ id }) => commandFind(id, command));
  const wanted = text.toLowerCase();
  const labels = items
    .flatMap(({ labels }) => Object.entries(labels).map(([key, value]) => `${key}:${value}`))
    .filter((label) => label.toLowerCase().includes(wanted));
  return [
    ...items.map(({ id, description, status }) =>
      go('schedule', id, href(pagePath(id)), description === null ? status : `${status}, ${description}`),
    ),
    ...[...new Set(labels)].slice(0, LABELS).flatMap(labelFinds),
  ];
}

function labelFinds(label: string): Find[] {
  return [
    go('label', `Schedules with ${label}`, href('/schedules', { label: [label] })),
    go('label', `Runs with ${label}`, href('/runs', { label: [label] })),
  ];
}

function commandFind(id: string, { name, verb, act }: Command): Find {
  return { key: `${name} ${id}`, kind: 'action', text: `${verb} ${id}`, choose: () => act(id) };
}
