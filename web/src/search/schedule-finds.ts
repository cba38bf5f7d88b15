import { call } from '../api/http.ts';
import type { ListSchedulesResponse } from '../../../clients/typescript/src/generated/types.gen.ts';
import { goTo, href } from '../state/route.ts';
import type { Role } from '../state/session.ts';
import { type Find, go } from './find.ts';
import { callPath, pagePath } from '../state/schedule-paths.ts';

type Schedule = ListSchedulesResponse['items'][number];

/** What can be typed before a schedule. */
export interface Command {
  name: string;
  verb: string;
  role: Role;
  fits: (schedule: Schedule) => boolean;
  act: (id: string) => Promise<string>;
}

export const COMMANDS: readonly Command[] = [
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
export function finds(items: readonly Schedule[], text: string, command?: Command): Find[] {
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

export function labelFinds(label: string): Find[] {
  return [
    go('label', `Schedules with ${label}`, href('/schedules', { label: [label] })),
    go('label', `Runs with ${label}`, href('/runs', { label: [label] })),
  ];
}

function commandFind(id: string, { name, verb, act }: Command): Find {
  return { key: `${name} ${id}`, kind: 'action', text: `${verb} ${id}`, choose: () => act(id) };
}
