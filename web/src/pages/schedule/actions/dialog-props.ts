import type { Schedule } from '../../../../../clients/typescript/src/generated/types.gen.ts';

export interface DialogProps {
  schedule: Schedule;
  onClose: () => void;
  /** The schedule, or what became of it, is another now. */
  onDone: () => void;
}
