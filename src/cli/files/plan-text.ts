import { SINGULAR } from '../../schedules-file/schedules-file.ts';
import type { Change, FieldChange, FilePlan } from '../../schedules-file/apply/file-plan.ts';
import { printable } from '../terminal/shown-text.ts';
import type { View } from '../terminal/output.ts';

const SIGNS = { created: '+', updated: '~', deleted: '-' } as const;
const PAINTS = { created: 'green', updated: 'yellow', deleted: 'red' } as const;
const MASK = '***';

export function planLines({ changes, unchanged }: FilePlan, view: View): string[] {
  return [...changes.flatMap((change) => changeLines(change, view)), summary(changes, unchanged)];
}

function changeLines({ kind, id, change, fields }: Change, view: View): string[] {
  const title = view.paint(PAINTS[change], `${SIGNS[change]} ${SINGULAR[kind]} ${id}`);
  return [title, ...fields.map((field) => `    ${printable(fieldText(field))}`)];
}

function fieldText({ path, before, after }: FieldChange): string {
  // Two masks look alike, whatever values they hide.
  if (before === MASK && after === MASK) return `${path}: another secret value`;
  return `${path}: ${shortJson(before)} → ${shortJson(after)}`;
}

const MAX_LENGTH = 200;

function shortJson(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length <= MAX_LENGTH ? text : `${text.slice(0, MAX_LENGTH)}…`;
}

function summary(changes: readonly Change[], unchanged: number): string {
  const count = (wanted: Change['change']) => changes.filter(({ change }) => change === wanted).length;
  return `${count('created')} to create, ${count('updated')} to change, ${count('deleted')} to delete, ${unchanged} as they are`;
}
