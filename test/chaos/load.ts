import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Definition, Edit } from './history.ts';
import type { Instance } from './instance.ts';
import type { Random } from './random.ts';

export const CANARY = 'canary';

/** Both are taken from the API itself: an older version of the daemon is tried with what it knows. */
export interface Features {
  atMostOnce: boolean;
  lookup: boolean;
}

export interface LoadOptions {
  schedules: number;
  /** Pause between two edits. */
  editEveryMs: number;
  receiverPort: number;
  random: Random;
  instances: readonly Instance[];
}

/** The schedules and what a client does with them, all through the API; every write is logged with what came of it. */
export interface Load {
  readonly edits: Edit[];
  features(): Promise<Features>;
  /** Creates the schedules; fails where it is not acknowledged. */
  create(features: Features): Promise<void>;
  /** Edits, pauses, deletes and creates on any instance until told to stop. */
  startEditing(): { stop: () => Promise<void> };
  /** Pauses these schedules; resolves when that is acknowledged. */
  pauseAll(ids: readonly string[]): Promise<void>;
}

const LONG_ENOUGH_MS = 15_000;
const EDITORS = 4;

export function createLoad(options: LoadOptions): Load {
  const { random, instances, receiverPort } = options;
  const edits: Edit[] = [];
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
      definition === null ? [] : [bodyOf(scheduleId, definition, marker ?? '', receiverPort)],
    );
    const body = path.path.endsWith('/batch') ? { items: bodies } : bodies[0];
    const outcome = await send(`${instance.url}/api/v1${path.path}`, path.method, body);
    for (const edit of logged) Object.assign(edit, { outcome, endedAt: Date.now() });
    return outcome;
  }

  const put = (id: string, definition: Definition, instance?: Instance) =>
    write({ method: 'PUT', path: `/schedules/${id}` }, [{ id, definition }], instance);
  const remove = (id: string) =>
    write({ method: 'DELETE', path: `/schedules/${id}` }, [{ id, definition: null }]);

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

  return {
    edits,
    features: async () => {
      const [first] = instances;
      const base = definitionOf(0, { atMostOnce: false, lookup: false });
      const knows = async (definition: Definition) =>
        (await put('probe', { ...definition, enabled: false }, first)) === 'acked';
      const atMostOnce = await knows({ ...base, delivery: 'atMostOnce' });
      return { atMostOnce, lookup: await knows({ ...base, lookup: true }) };
    },
    create: async (features) => {
      for (let index = 0; index < options.schedules; index += 1) {
        current.set(`s${String(index).padStart(3, '0')}`, definitionOf(index, features));
      }
      current.set(CANARY, { ...definitionOf(0, features), delivery: 'atLeastOnce', lookup: false });
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
    pauseAll: async (ids) => {
      const items = ids.flatMap((id) => {
        const definition = current.get(id);
        return definition ? [{ id, definition: { ...definition, enabled: false } }] : [];
      });
      for (;;) {
        if ((await write({ method: 'POST', path: '/schedules/batch' }, items)) === 'acked') return;
        await sleep(500);
      }
    },
  };
}

/** About 0.7 fires a second for each schedule; a quarter at most once, half of those with a lookup. */
function definitionOf(index: number, features: Features): Definition {
  const crons = [
    '* * * * * *',
    '* * * * * *',
    '*/2 * * * * *',
    '* * * * * *',
    '*/3 * * * * *',
    '*/5 * * * * *',
  ];
  const rare = ['* * * * *', '*/2 * * * *', '30 * * * * *'];
  const cron = (index % 20 === 19 ? rare[index % 3] : crons[index % crons.length]) ?? '';
  const atMostOnce = features.atMostOnce && index % 4 === 1;
  return {
    cron,
    enabled: true,
    delivery: atMostOnce ? 'atMostOnce' : 'atLeastOnce',
    lookup: features.lookup && index % 8 >= 4 && index % 4 <= 1,
    maxAttempts: 100,
    timeoutSeconds: 1 + (index % 3 === 0 ? 1 : 0),
  };
}

function change(before: Definition, random: Random): Partial<Definition> {
  const drawn = random.next();
  if (drawn < 0.3) return { enabled: !before.enabled };
  if (drawn < 0.6)
    return { cron: random.pick(['* * * * * *', '*/2 * * * * *', '*/4 * * * * *', '* * * * *']) };
  return {};
}

function bodyOf(id: string, definition: Definition, marker: string, port: number): Record<string, unknown> {
  const { cron, enabled, delivery, lookup, maxAttempts, timeoutSeconds } = definition;
  const origin = `http://127.0.0.1:${port}`;
  return {
    id,
    cron,
    enabled,
    timeoutSeconds,
    ...(delivery === 'atLeastOnce' ? {} : { delivery }),
    target: {
      type: 'http',
      url: `${origin}/fire/${id}`,
      ...(lookup ? { lookup: { url: `${origin}/lookup/{{runId}}` } } : {}),
    },
    payload: { marker },
    retry: { maxAttempts, minBackoffSeconds: 0.2, maxBackoffSeconds: 2 },
  };
}

/** A 4xx and a refused connection changed nothing; after anything else but a 2xx nobody knows. */
async function send(url: string, method: string, body: unknown): Promise<Edit['outcome']> {
  try {
    const response = await fetch(url, {
      method,
      signal: AbortSignal.timeout(LONG_ENOUGH_MS),
      ...(body === undefined
        ? {}
        : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    });
    await response.text();
    if (response.ok) return 'acked';
    return response.status < 500 ? 'refused' : 'unknown';
  } catch (error) {
    const { cause } = error as { cause?: { code?: string } };
    return cause?.code === 'ECONNREFUSED' ? 'refused' : 'unknown';
  }
}
