import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { Dialog } from '../parts/forms/dialog.tsx';
import { Refusal } from '../parts/states.tsx';
import { useAct } from '../state/act.ts';
import type { Find } from './find.ts';
import { type Answer, ask, placesFor } from './finds.ts';
import './search.css';

const TYPED_FOR_MS = 150;

/** A button, and the keys, that open the box. */
export function Search() {
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      if (!opens(event) || document.querySelector('dialog[open]') !== null) return;
      event.preventDefault();
      setOpen(true);
    };
    document.addEventListener('keydown', pressed);
    return () => {
      document.removeEventListener('keydown', pressed);
    };
  }, []);
  return (
    <>
      <button
        type="button"
        class="plain"
        aria-keyshortcuts="/ Control+K Meta+K"
        title="Search: / or Ctrl+K"
        onClick={() => {
          setOpen(true);
        }}
      >
        Search <kbd>/</kbd>
      </button>
      {isOpen && (
        <Box
          onClose={() => {
            setOpen(false);
          }}
        />
      )}
    </>
  );
}

/** `/` is a sign like any other where text is typed. */
function opens({ key, metaKey, ctrlKey, altKey, target }: KeyboardEvent): boolean {
  if (key.toLowerCase() === 'k') return (metaKey || ctrlKey) && !altKey;
  const types = target instanceof Element && target.closest('input, textarea, select') !== null;
  return key === '/' && !metaKey && !ctrlKey && !altKey && !types;
}

function useFinds(typed: string): Answer & { isAsking: boolean } {
  const [state, setState] = useState<{ typed: string } & Answer>({ typed: '', finds: [], problem: null });
  useEffect(() => {
    const asked = new AbortController();
    const timer = setTimeout(() => {
      void ask(typed, asked.signal).then((answer) => {
        if (!asked.signal.aborted) setState({ typed, ...answer });
      });
    }, TYPED_FOR_MS);
    return () => {
      clearTimeout(timer);
      asked.abort();
    };
  }, [typed]);
  const isAsking = state.typed !== typed;
  // While the next answer is awaited nothing of the last one may be chosen by Enter.
  const finds = isAsking ? [] : state.finds;
  return { finds: [...placesFor(typed), ...finds], problem: isAsking ? null : state.problem, isAsking };
}

function Box({ onClose }: { onClose: () => void }) {
  const [typed, setTyped] = useState('');
  const [at, setAt] = useState(0);
  const { finds, problem, isAsking } = useFinds(typed);
  const { act, isBusy } = useAct();
  const list = useId();
  const active = Math.min(at, finds.length - 1);
  const choose = async (find: Find | undefined): Promise<void> => {
    if (find && !isBusy && (await act(find.choose))) onClose();
  };
  const pressed = (event: KeyboardEvent): void => {
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1 };
    const step = steps[event.key];
    if (step !== undefined && finds.length > 0) {
      setAt((active + step + finds.length) % finds.length);
    } else if (event.key === 'Enter' && !event.isComposing) {
      void choose(finds[active]);
    } else return;
    event.preventDefault();
  };
  return (
    <Dialog title="Search" onClose={onClose}>
      <input
        type="text"
        class="search-box"
        role="combobox"
        aria-label="Search"
        aria-expanded={finds.length > 0}
        aria-controls={list}
        aria-autocomplete="list"
        aria-activedescendant={active >= 0 ? `${list}-${active}` : undefined}
        placeholder="A schedule, a run's id or key, a label; or: fire X, pause X"
        autocomplete="off"
        spellcheck={false}
        autofocus
        value={typed}
        onKeyDown={pressed}
        onInput={({ currentTarget }) => {
          setTyped(currentTarget.value);
          setAt(0);
        }}
      />
      {problem !== null && <Refusal text={problem} />}
      <Finds id={list} finds={finds} active={active} onChoose={(find) => void choose(find)} />
      <p class="quiet" role="status">
        {saidOf(finds.length, isAsking)}
      </p>
    </Dialog>
  );
}

function saidOf(count: number, isAsking: boolean): string {
  if (isAsking) return 'Searching…';
  return count === 0 ? 'Nothing is found.' : `${count} found`;
}

interface FindsProps {
  id: string;
  finds: readonly Find[];
  active: number;
  onChoose: (find: Find) => void;
}

function Finds({ id, finds, active, onChoose }: FindsProps) {
  const chosen = useRef<HTMLLIElement>(null);
  useEffect(() => {
    chosen.current?.scrollIntoView({ block: 'nearest' });
  }, [active]);
  return (
    <ul id={id} role="listbox" aria-label="Found" class="finds">
      {finds.map((find, index) => (
        <li
          key={find.key}
          id={`${id}-${index}`}
          role="option"
          aria-selected={index === active}
          ref={index === active ? chosen : null}
          onClick={() => {
            onChoose(find);
          }}
        >
          <span class="quiet">{find.kind}</span>
          <span class="user">
            {find.text}
            {find.detail !== undefined && <span class="quiet clip">{find.detail}</span>}
          </span>
        </li>
      ))}
    </ul>
  );
}
