import type { FileEntry } from '../schedules-file.ts';
import type { FieldChange } from './file-plan.ts';

const PAUSE = ['enabled', 'pauseReason', 'pauseUntil'] as const;

/**
 * If the file does not say whether a schedule is enabled, a pause stays: a paused schedule must not go on because a
 * daemon starts or a file is applied. Payloads that differ only in white space count as equal.
 */
export function keepWhatIsNotSaid(changes: readonly FieldChange[], { fields, payload }: FileEntry) {
  let left = changes.filter(
    ({ path, before, after }) => path !== '/payload' || JSON.stringify(before) !== JSON.stringify(after),
  );
  const saysNothing = PAUSE.every((name) => fields[name] === undefined);
  const ends = left.some(({ path, before }) => path === '/enabled' && before === false);
  const kept: Record<string, unknown> = {};
  if (saysNothing && ends) {
    for (const name of PAUSE) kept[name] = left.find(({ path }) => path === `/${name}`)?.before ?? null;
    left = left.filter(({ path }) => !PAUSE.some((name) => path === `/${name}`));
  }
  return { changes: left, fields: { ...fields, ...kept }, payload };
}
