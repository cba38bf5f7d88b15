import type { FireTimeAnswer } from '../server/answers.ts';
import type { View } from '../terminal/output.ts';

/** Fires to come, one on each line. `local` is in the zone of the schedule, and not in the reader's. */
export function fireTimeLines(items: readonly FireTimeAnswer[], view: View): string[] {
  if (items.length === 0) return ['no fire is to come'];
  const remark = ({ note, dueAt, skipped, skipReason }: FireTimeAnswer) =>
    [
      note,
      skipped && (skipReason === undefined ? 'skipped' : `skipped: ${skipReason}`),
      dueAt === undefined ? undefined : `with its jitter ${dueAt}`,
    ]
      .filter((part) => typeof part === 'string')
      .join('; ');
  return [
    ...view.table(
      [
        { title: 'FIRES AT', cell: ({ fireAt }) => view.cellTime(fireAt) },
        { title: 'IN ITS ZONE', cell: ({ local }) => local.replace('T', ' ').replace('.000', '') },
        { title: 'REMARK', cell: (item) => remark(item), shrinks: true },
      ],
      items,
    ),
    view.zoneNote,
  ];
}
