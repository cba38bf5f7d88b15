import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Request, send } from '../../support/calls.ts';
import type { Definition, Edit, Fire } from '../checker/history.ts';
import type { Instance } from '../cluster/instance.ts';
import {
  CONNECTION,
  LIMIT,
  connectionBody,
  bodyOf,
  change,
  definitionOf,
  maxRunningOf,
  NOTIFIER,
  notifierBody,
  plain,
} from './load-definitions.ts';
import type { Random } from '../random.ts';

export const CANARY = 'canary';

interface LoadOptions {
  schedules: number;
  /** Wait between two edits. */
  editEveryMs: number;
  /** Wait between two schedules fired by hand. */
  fireEveryMs: number;
  /** By a schedule's number; by itself one of every kind. */
  definitionOf?: (index: number) => Definition;
  receiverPort: number;
  /** Where commands write down what they do; null: there are no workers. */
  journal: string | null;
  random: Random;
  instances: readonly Instance[];
}

/** The schedules and what a client does with them, all through the API; every write is logged with what came of it. */
export interface Load {
  readonly edits: Edit[];
  readonly fires: Fire[];
  /** How many runs of each limit may be under way at once. */
  readonly limits: Record<string, number>;
  /** Creates the schedules, and what they name; fails where it is not acknowledged. */
  create(): Promise<void>;
  /** Edits, pauses, deletes and creates on any instance until told to stop. */
  startEditing(): { stop: () => Promise<void> };
  /** Fires schedules by hand, on all instances at once, until told to stop. */
  startFiring(): { stop: () => Promise<void> };
  /** Pauses these schedules; resolves when that is acknowledged, or at `until` (milliseconds since 1970). */
  pauseAll(ids: readonly string[], until: number): Promise<void>;
}

/** For what hangs: the longest fault of an instance is over long before. */
const LONG_ENOUGH_MS = 60_000;
const EDITORS = 4;

export function createLoad(options: LoadOptions): Load {
  const { random, instances, receiverPort, journal } = options;
  const places = { port: receiverPort, journal: journal ?? '' };
  const edits: Edit[] = [];
  const fires: Fire[] = [];
  const limits: Record<string, number> = {};
  const current = new Map<string, Definition>();
  const deleted = new Set<string>();

  async function write(
    path: { method: string; path: string },
    items: { id: string; definition: Definition | null }[],
    instance = random.pick(instances),
  ): Promise<Edit['outcome']> {
    const logged = items.map(({ id, definition }): Edit => ({
      scheduleId: id,
      kind: definition === null ? 'delete' : 'put',
      marker: definition === null ? null : randomUUID(),
      definition,
      sentAt: Date.now(),
      endedAt: Infinity,
      outcome: 'unknown',
    }));
    edits.push(...logged);
    const bodies = logged.flatMap(({ scheduleId, definition, marker }) =>
      definition === null ? [] : [bodyOf(scheduleId, definition, marker ?? '', places)],
    );
    const body = path.path.endsWith('/batch') ? { items: bodies } : bodies[0];
    const outcome = await outcomeOf(`${instance.url}/api/v1${path.path}`, path.method, { body });
    for (const edit of logged) Object.assign(edit, { outcome, endedAt: Date.now() });
    return outcome;
  }

  const put = (id: string, definition: Definition, instance?: Instance) =>
    write({ method: 'PUT', path: `/schedules/${id}` }, [{ id, definition }], instance);
  const remove = (id: string) => write({ method: 'DELETE', path: `/schedules/${id}` }, [{ id, definition: null }]);

  async function edit(id: string): Promise<void> {
    const before = current.get(id);
    if (!before) return;
    if (!deleted.has(id) && random.chance(0.15)) {
      const outcome = await remove(id);
      if (outcome === 'acked') deleted.add(id);
      return;
    }
    const definition = { ...before, ...change(before, random) };
    current.set(id, definition);
    const outcome = await put(id, definition);
    if (outcome === 'acked') deleted.delete(id);
  }

  /** On every instance at the same moment: only a lock keeps them from starting side by side. */
  async function fireEverywhere(scheduleId: string): Promise<void> {
    const calls = instances.map(async ({ url }) => {
      const key = randomUUID();
      const fire: Fire = { scheduleId, key, sentAt: Date.now(), endedAt: Infinity, outcome: 'unknown' };
      fires.push(fire);
      const path = `${url}/api/v1/schedules/${scheduleId}/fire`;
      const outcome = await outcomeOf(path, 'POST', { headers: { 'idempotency-key': key } });
      Object.assign(fire, { outcome, endedAt: Date.now() });
    });
    await Promise.all(calls);
  }

  async function createNamed(path: string, body: object): Promise<void> {
    const outcome = await outcomeOf(`${instances[0]?.url ?? ''}/api/v1/${path}`, 'PUT', { body });
    if (outcome !== 'acked') throw new Error(`${path} could not be created`);
  }

  return {
    edits,
    fires,
    limits,
    create: async () => {
      limits[LIMIT] = maxRunningOf(options.schedules);
      await createNamed(`limits/${LIMIT}`, { maxRunning: limits[LIMIT] });
      await createNamed(`connections/${CONNECTION}`, connectionBody(receiverPort));
      await createNamed(`notifiers/${NOTIFIER}`, notifierBody(receiverPort));
      const commands = journal !== null;
      for (let index = 0; index < options.schedules; index += 1) {
        const definition = options.definitionOf?.(index) ?? definitionOf(index, { commands });
        current.set(`s${String(index).padStart(3, '0')}`, definition);
      }
      current.set(CANARY, plain(0));
      const items = [...current].map(([id, definition]) => ({ id, definition }));
      const outcome = await write({ method: 'POST', path: '/schedules/batch' }, items);
      if (outcome !== 'acked') throw new Error('the schedules could not be created');
    },
    startEditing: () => {
      let stopping = false;
      const editable = [...current.keys()].filter((id, index) => id !== CANARY && index % 4 === 0);
      const editor = async (own: readonly string[]) => {
        while (!stopping && own.length > 0) {
          await edit(random.pick(own));
          await sleep(options.editEveryMs * EDITORS * random.between(0.5, 1.5));
        }
      };
      const editors = Array.from({ length: EDITORS }, (_, editorIndex) =>
        editor(editable.filter((_id, index) => index % EDITORS === editorIndex)),
      );
      return {
        stop: async () => {
          stopping = true;
          await Promise.all(editors);
        },
      };
    },
    startFiring: () => {
      let stopping = false;
      const ids = [...current].flatMap(([id, { overlap }]) => (overlap === 'allow' ? [] : [id]));
      const firing = async () => {
        for (let turn = 0; !stopping && ids.length > 0; turn += 1) {
          await fireEverywhere(ids[turn % ids.length] ?? '');
          await sleep(options.fireEveryMs);
        }
      };
      const fired = firing();
      return {
        stop: async () => {
          stopping = true;
          await fired;
        },
      };
    },
    pauseAll: async (ids, until) => {
      const items = ids.flatMap((id) => {
        const definition = current.get(id);
        return definition ? [{ id, definition: { ...definition, enabled: false } }] : [];
      });
      while (Date.now() < until) {
        if ((await write({ method: 'POST', path: '/schedules/batch' }, items)) === 'acked') return;
        await sleep(500);
      }
    },
  };
}

/** A 4xx and a refused connection changed nothing; after anything else but a 2xx the result is unknown. */
async function outcomeOf(url: string, method: string, request: Request): Promise<Edit['outcome']> {
  try {
    const { status } = await send(url, method, { ...request, limitMs: LONG_ENOUGH_MS });
    if (status < 300) return 'acked';
    return status < 500 ? 'refused' : 'unknown';
  } catch (error) {
    const { cause } = error as { cause?: { code?: string } };
    return cause?.code === 'ECONNREFUSED' ? 'refused' : 'unknown';
  }
}
