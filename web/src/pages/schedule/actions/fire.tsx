import { useState } from 'preact/hooks';
import { call } from '../../../api/http.ts';
import { JsonText, faultOfJson, formatJson, textOf } from '../../../api/json.ts';
import type { Run, Schedule } from '../../../../../clients/typescript/src/generated/types.gen.ts';
import { Dialog } from '../../../parts/forms/dialog.tsx';
import { Field, OtherFaults } from '../../../parts/forms/field.tsx';
import { RunLink } from '../../../parts/links.tsx';
import { Refusal } from '../../../parts/states.tsx';
import { useAct } from '../../../state/act.ts';
import { callPath } from '../../../state/schedule-paths.ts';
import type { DialogProps } from './dialog-props.ts';

/** Fires now, with the stored payload or another one. */
export function FireDialog({ schedule, onClose, onDone }: DialogProps) {
  const [stored] = useState(() => formatJson(textOf(schedule.payload)));
  const [typed, setTyped] = useState(stored);
  const [key] = useState(newKey);
  const [fired, setFired] = useState<Run | null>(null);
  const { act, isBusy, faults, refusal } = useAct({ quietly: true });
  const local = faultOfJson(typed);
  const shown = local === null ? faults : [{ path: '/payload', message: local }];
  const fire = () =>
    act(async () => {
      setFired(await sendFire(schedule, typed === stored ? null : typed, key));
      onDone();
      return null;
    });
  if (fired) return <Fired run={fired} onClose={onClose} />;
  return (
    <Dialog title="Fire now" onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (local === null) void fire();
        }}
      >
        <p class="field">A run is made and handed to the target at once. The fires to come are not touched.</p>
        <Field
          label="Payload"
          path="/payload"
          faults={shown}
          hint="JSON, sent byte for byte as it stands here. Unchanged, the schedule's own is sent."
        >
          {(props) => (
            <textarea
              {...props}
              rows={10}
              spellcheck={false}
              value={typed}
              onInput={({ currentTarget }) => setTyped(currentTarget.value)}
            />
          )}
        </Field>
        <OtherFaults faults={faults} paths={['/payload']} />
        {refusal !== null && faults.length === 0 && <Refusal text={refusal} />}
        <div class="actions">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="main" disabled={isBusy || local !== null}>
            Fire
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function Fired({ run, onClose }: { run: Run; onClose: () => void }) {
  return (
    <Dialog title="It is fired" onClose={onClose}>
      <p>
        Its run is <RunLink id={run.id}>{run.id}</RunLink>
      </p>
      <div class="actions">
        <button type="button" class="main" autofocus onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}

function sendFire({ id }: Schedule, payload: string | null, key: string): Promise<Run> {
  return call<Run>('POST', callPath(id, '/fire'), {
    ...(payload !== null && { body: { payload: new JsonText(payload) } }),
    // Pressed twice, or sent again after no answer came, it is the same fire.
    headers: { 'idempotency-key': key },
  });
}

/** `crypto.randomUUID` is not there where a page came without TLS. */
function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `dashboard-${[...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}
