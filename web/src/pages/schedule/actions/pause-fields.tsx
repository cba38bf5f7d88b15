import type { Fault } from '../../../api/http.ts';
import { Field } from '../../../parts/forms/field.tsx';
import { MomentInput } from '../../../parts/forms/moment.tsx';
import { TextInput } from '../../../parts/forms/text-input.tsx';

interface Pause {
  /** Empty: none. */
  reason: string;
  /** ISO 8601; empty: until somebody resumes it. */
  until: string;
}

export const NO_PAUSE: Pause = { reason: '', until: '' };
/** Where a PATCH has them. */
export const PAUSE_PATHS = ['/pauseReason', '/pauseUntil'] as const;

interface Props {
  pause: Pause;
  onChange: (pause: Pause) => void;
  zone: string;
  faults: readonly Fault[];
  /** Where the call has them. */
  paths: readonly [reason: string, until: string];
}

/** Why, and until when. */
export function PauseFields({ pause, onChange, zone, faults, paths: [reasonPath, untilPath] }: Props) {
  return (
    <>
      <TextInput
        label="Reason"
        path={reasonPath}
        faults={faults}
        value={pause.reason}
        hint="Shown to users who ask why it did not run."
        onChange={(reason) => onChange({ ...pause, reason })}
      />
      <Field
        label="Until"
        path={untilPath}
        faults={faults}
        hint="It is resumed by itself then. Empty: when somebody resumes it."
      >
        {(props) => (
          <MomentInput
            field={props}
            zone={zone}
            value={pause.until}
            onChange={(until) => onChange({ ...pause, until })}
          />
        )}
      </Field>
    </>
  );
}

/** Of a PATCH that pauses. */
export function pauseBody({ reason, until }: Pause) {
  return { enabled: false, pauseReason: reason || null, pauseUntil: until || null };
}
