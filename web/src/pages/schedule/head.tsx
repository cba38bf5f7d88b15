import type { Schedule } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { Badge } from '../../parts/badge.tsx';
import { Labels } from '../../parts/labels.tsx';
import { Ago, Time } from '../../parts/time.tsx';
import { goTo, href } from '../../state/route.ts';
import { Actions } from './actions/actions.tsx';
import { PausedSince } from './paused-since.tsx';

/** What it is, how it stands, and what can be done. */
export function Head({ schedule, onDone }: { schedule: Schedule; onDone: () => void }) {
  const { id, status, late, description, labels } = schedule;
  return (
    <header class="schedule-head">
      <div class="bar">
        <h1 class="user">{id}</h1>
        <Actions schedule={schedule} onDone={onDone} />
      </div>
      <p class="standing">
        <Badge status={status} /> {late && <Badge status="late" />} <Standing schedule={schedule} />
      </p>
      {description !== null && <p class="user description">{description}</p>}
      <div>
        <Labels
          labels={labels}
          onChoose={(label) => {
            goTo(href('/schedules', { label }));
          }}
        />{' '}
        <a href={href('/alerts', { scheduleId: id })}>Its alerts</a>
      </div>
    </header>
  );
}

/** The status in words. */
function Standing({ schedule }: { schedule: Schedule }) {
  const { status, timezone, nextFireAt, lastFireAt, error, after, late, observe } = schedule;
  const isExpected = (at: string) =>
    observe !== null && (observe.until === null || Date.parse(at) < Date.parse(observe.until));
  return (
    <span>
      {status === 'active' && nextFireAt !== null && (
        <>
          {isExpected(nextFireAt) ? 'Expected' : 'Fires'} next at{' '}
          <Time at={nextFireAt} zone={timezone} relative="next" />.
        </>
      )}
      {status === 'active' && after !== null && <>Fires when runs of {parentText(after.scheduleId)} end.</>}
      {status === 'paused' && <Paused schedule={schedule} />}
      {status === 'ended' && 'Nothing is left to fire.'}
      {status === 'error' && (
        <>
          It cannot be planned: <span class="user bad">{error}</span>
        </>
      )}
      {late && schedule.successWithinSeconds !== null && (
        <> No run has succeeded for longer than {schedule.successWithinSeconds} seconds.</>
      )}{' '}
      {lastFireAt !== null && (
        <span class="quiet">
          It {isExpected(lastFireAt) ? 'was expected' : 'fired'} last <Ago at={lastFireAt} />.
        </span>
      )}
    </span>
  );
}

function Paused({ schedule: { id, version, pauseUntil, timezone } }: { schedule: Schedule }) {
  return (
    <>
      {pauseUntil !== null && (
        <>
          Paused until <Time at={pauseUntil} zone={timezone} relative />.{' '}
        </>
      )}
      <PausedSince id={id} version={version} />
    </>
  );
}

function parentText(id: string): string {
  return id === '*' ? 'any schedule' : id;
}
