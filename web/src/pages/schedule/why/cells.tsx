import { useRef, useState } from 'preact/hooks';
import { type Outcome, WORDS } from './outcome.ts';

export interface Cell {
  key: string;
  /** Null: there is nothing in it. */
  outcome: Outcome | null;
  /** What it says to those who do not see its colour. */
  name: string;
  text?: string | undefined;
  /** Column of a week, of the first cell of a month. */
  column?: number | undefined;
}

interface Props {
  label: string;
  cells: readonly Cell[];
  kind: 'one' | 'bar' | 'month';
  chosen: string | null;
  onChoose: (key: string) => void;
}

/** Cells in a row or a calendar. One of them is reached by Tab, and the others from there by the arrow keys. */
export function Cells({ label, cells, kind, chosen, onChoose }: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const [reached, setReached] = useState<string | null>(null);
  const known = new Set(cells.map(({ key }) => key));
  const tabbed = [reached, chosen].find((key) => key !== null && known.has(key)) ?? cells[0]?.key;
  const move = (event: KeyboardEvent, index: number): void => {
    const step = stepOf(event.key, kind, index, cells.length);
    const next = step === null ? undefined : cells[step];
    if (next === undefined || step === null) return;
    event.preventDefault();
    setReached(next.key);
    frame.current?.querySelectorAll('button')[step]?.focus();
  };
  return (
    <div ref={frame} class={`cells ${kind}`} role="group" aria-label={label}>
      {cells.map(({ key, outcome, name, text, column }, index) => (
        <button
          key={key}
          type="button"
          class={`cell o-${outcome ?? 'none'} ${column === undefined ? '' : `column-${column}`}`}
          aria-label={name}
          aria-pressed={key === chosen}
          title={name}
          tabIndex={key === tabbed ? 0 : -1}
          onKeyDown={(event) => {
            move(event, index);
          }}
          onFocus={() => {
            setReached(key);
          }}
          onClick={() => {
            onChoose(key);
          }}
        >
          {text}
        </button>
      ))}
    </div>
  );
}

/** Null: the key is for somebody else. */
function stepOf(key: string, kind: Props['kind'], index: number, count: number): number | null {
  const row = kind === 'month' ? 7 : 1;
  const steps: Record<string, number> = {
    ArrowLeft: index - 1,
    ArrowRight: index + 1,
    ArrowUp: index - row,
    ArrowDown: index + row,
    Home: 0,
    End: count - 1,
  };
  const step = steps[key];
  return step === undefined ? null : Math.max(0, Math.min(count - 1, step));
}

/** What the colours mean: of those in sight, with how many there are. */
export function Legend({ counts }: { counts: readonly (readonly [outcome: Outcome, count: number])[] }) {
  return (
    <p class="why-legend">
      {counts.map(([outcome, count]) => (
        <span key={outcome}>
          <i class={`swatch o-${outcome}`} aria-hidden="true" /> {count} {WORDS[outcome]}
        </span>
      ))}
    </p>
  );
}
