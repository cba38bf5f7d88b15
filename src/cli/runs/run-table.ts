import type { RunAnswer } from '../server/answers.ts';
import type { View } from '../terminal/output.ts';
import { paintStatus } from '../terminal/paint.ts';
import type { Column } from '../terminal/table.ts';
import { durationText } from '../terminal/time-text.ts';
import { errorText } from './run-text.ts';

export function runColumns(view: View): Column<RunAnswer>[] {
  return [
    { title: 'RUN', cell: ({ id }) => id },
    { title: 'SCHEDULE', cell: ({ scheduleId }) => scheduleId, shrinks: true },
    { title: 'SCHEDULED FOR', cell: ({ scheduledFor }) => view.cellTime(scheduledFor) },
    { title: 'STATUS', cell: ({ status }) => status, paint: paintStatus },
    { title: 'TRIGGER', cell: ({ trigger }) => trigger, mayGo: true },
    { title: 'REASON', cell: ({ reason }) => reason, isExtra: true },
    { title: 'ATTEMPTS', cell: ({ attempts }) => attempts, align: 'right', mayGo: true },
    { title: 'LATE', cell: ({ latenessMs }) => durationText(latenessMs), align: 'right', mayGo: true },
    { title: 'ENDED', cell: ({ finishedAt }) => view.cellTime(finishedAt), isExtra: true },
    { title: 'ERROR', cell: errorText, shrinks: true, mayGo: true },
  ];
}
