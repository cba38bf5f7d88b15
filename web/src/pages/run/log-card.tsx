import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { WholeRun } from '../../../../clients/typescript/src/generated/types.gen.ts';

type Shown = ComponentType<{ id: string; attempts: number }> | 'lost' | null;

/** The log of a run, which is loaded when somebody opens it: of a run that workers pull, at once. */
export function LogCard({ run: { id, attempts, queue, notifierId } }: { run: WholeRun }) {
  const [Log, setLog] = useState<Shown>(null);
  const [isOpen, setIsOpen] = useState(queue !== null);
  useEffect(() => {
    if (!isOpen || Log !== null) return;
    import('./log.tsx').then(
      (loaded) => {
        setLog(() => loaded.Log);
      },
      () => {
        setLog('lost');
      },
    );
  }, [isOpen]);
  if (notifierId !== null) return null;
  return (
    <details
      class="card"
      open={isOpen}
      onToggle={({ currentTarget: { open } }) => {
        setIsOpen(open);
      }}
    >
      <summary>
        <h2>Log</h2>
      </summary>
      {Log === 'lost' && <p class="warning">This part of the page could not be loaded: reload the page.</p>}
      {isOpen && Log !== null && Log !== 'lost' && <Log key={id} id={id} attempts={attempts} />}
    </details>
  );
}
