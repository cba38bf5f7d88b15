import { useState } from 'preact/hooks';
import { call } from '../../api/http.ts';
import type { Maintenance } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { Field, OtherFaults } from '../../parts/forms/field.tsx';
import { Loading, Refusal } from '../../parts/states.tsx';
import { Segments } from '../../parts/forms/segments.tsx';
import { useAct } from '../../state/act.ts';
import { maintenance } from '../../state/maintenance.ts';
import { may, scope } from '../../state/session.ts';
import { MY_ZONE } from '../../state/zone.ts';

export function MaintenancePage() {
  const now = maintenance.value;
  return (
    <div class="stack">
      <h1>Maintenance</h1>
      <p class="quiet">
        While maintenance is on, no instance plans a schedule. Afterwards each schedule’s catch-up policy decides what
        becomes of the fires that it missed. Pauses of schedules are not touched.
      </p>
      {now === null ? <Loading /> : <State now={now} />}
    </div>
  );
}

function State({ now }: { now: Maintenance }) {
  return (
    <>
      <p>
        It is <strong>{now.on ? 'on' : 'off'}</strong>.
      </p>
      {may('admin') && scope.value === null ? (
        <Form now={now} />
      ) : (
        <p class="quiet">Only an admin who sees everything can change it.</p>
      )}
    </>
  );
}

function Form({ now }: { now: Maintenance }) {
  const [reason, setReason] = useState(now.reason ?? '');
  const [until, setUntil] = useState('');
  const [dispatch, setDispatch] = useState(now.dispatch);
  const { act, isBusy, faults, refusal } = useAct({ quietly: true });
  const set = (body: unknown, said: string) =>
    act(async () => {
      maintenance.value = await call<Maintenance>('POST', '/maintenance', { body });
      return said;
    });
  return (
    <form
      class="card"
      onSubmit={(event) => {
        event.preventDefault();
        void set(whatIsOn({ reason, until, dispatch }), 'Maintenance is on, on all instances within 5 seconds.');
      }}
    >
      <Field label="Reason" path="/reason" faults={faults} hint="Shown on every page. May be empty.">
        {(props) => (
          <input
            {...props}
            type="text"
            value={reason}
            onInput={({ currentTarget }) => setReason(currentTarget.value)}
          />
        )}
      </Field>
      <Field label={`Until (${MY_ZONE})`} path="/until" faults={faults} hint="Empty: until somebody ends it.">
        {(props) => (
          <input
            {...props}
            type="datetime-local"
            value={until}
            onInput={({ currentTarget }) => setUntil(currentTarget.value)}
          />
        )}
      </Field>
      <Segments
        label="Runs that are recorded already"
        options={[
          ['continue', 'Send what is recorded already'],
          ['hold', 'Hold everything'],
        ]}
        value={dispatch}
        onChange={setDispatch}
      />
      <OtherFaults faults={faults} paths={['/reason', '/until']} />
      {refusal !== null && faults.length === 0 && <Refusal text={refusal} />}
      <div class="actions">
        {now.on && (
          <button type="button" disabled={isBusy} onClick={() => void set({ on: false }, 'Maintenance is over.')}>
            End maintenance
          </button>
        )}
        <button type="submit" class="main" disabled={isBusy}>
          {now.on ? 'Change' : 'Turn maintenance on'}
        </button>
      </div>
    </form>
  );
}

function whatIsOn({ reason, until, dispatch }: Record<'reason' | 'until' | 'dispatch', string>) {
  return {
    on: true,
    dispatch,
    ...(reason !== '' && { reason }),
    ...(until !== '' && { until: new Date(until).toISOString() }),
  };
}
