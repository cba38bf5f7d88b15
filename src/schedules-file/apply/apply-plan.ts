import { type FileFault, type Kind, entryText, faultOf, type FilePlan, type ToSend } from '../schedules-file.ts';
import { type ApiCaller, Refused, ask } from './caller.ts';
import { batchesOf } from './plan-schedules.ts';

interface Applied {
  created: number;
  updated: number;
  deleted: number;
}

/** The API refused a call that the plan had found possible: something has changed meanwhile. */
export class NotApplied extends Error {
  override readonly name = 'NotApplied';
  readonly faults: readonly FileFault[];
  /** The calls before it, which stay done. */
  readonly applied: Applied;

  constructor(message: string, faults: readonly FileFault[], applied: Applied) {
    super(message);
    this.faults = faults;
    this.applied = applied;
  }
}

/**
 * Carries out a plan: limits, calendars, connections and notifiers, then schedules, each thousand of them all or none, then the deletions.
 * @throws NotApplied, and the errors of the caller
 */
export async function applyPlan(caller: ApiCaller, { toSend, toDelete, changes }: FilePlan): Promise<Applied> {
  const applied: Applied = { created: 0, updated: 0, deleted: 0 };
  const createdIds = new Set(
    changes.filter(({ change }) => change === 'created').map(({ kind, id }) => `${kind} ${id}`),
  );
  const done = ({ entry: { kind, id } }: ToSend) =>
    (applied[createdIds.has(`${kind} ${id}`) ? 'created' : 'updated'] += 1);
  const textOf = ({ entry, fields }: ToSend) => entryText(entry, fields);
  try {
    for (const kind of ['limits', 'calendars', 'connections', 'notifiers'] as const satisfies Kind[]) {
      for (const one of toSend[kind]) {
        await sending([one], '', () => ask(caller, 'PUT', `${kind}/${encodeURIComponent(one.entry.id)}`, textOf(one)));
        done(one);
      }
    }
    for (const { items, body } of batchesOf(toSend.schedules, textOf)) {
      await sending(items, '/items/', () => ask(caller, 'POST', 'schedules/batch', body));
      items.forEach(done);
    }
    for (const { id, version } of toDelete) {
      await ask(caller, 'DELETE', `schedules/${id}`, undefined, { 'if-match': `"${version}"` }).catch(unlessGone);
      applied.deleted += 1;
    }
    return applied;
  } catch (error) {
    if (error instanceof Refused) throw new NotApplied(error.message, [], applied);
    if (error instanceof Places) throw new NotApplied(error.message, error.faults, applied);
    throw error;
  }
}

function unlessGone(error: unknown): void {
  if (!(error instanceof Refused && error.status === 404)) throw error;
}

/** A refusal, with the lines of the entries that were sent. */
class Places extends Error {
  readonly faults: readonly FileFault[];

  constructor(message: string, faults: readonly FileFault[]) {
    super(message);
    this.faults = faults;
  }
}

async function sending(items: readonly ToSend[], prefix: string, send: () => Promise<unknown>): Promise<void> {
  try {
    await send();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    const faults = error.faults.flatMap(({ path, message }): FileFault[] => {
      const [, index = '0', pointer = ''] =
        prefix === '' ? ['', '0', path] : (/^\/items\/(\d+)(.*)$/s.exec(path) ?? []);
      const item = items[Number(index)];
      return item ? [faultOf(item.entry, pointer, message)] : [];
    });
    throw new Places(error.message, faults);
  }
}
