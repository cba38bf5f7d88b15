import { useEffect, useRef, useState } from 'preact/hooks';
import { followLog } from './follow-log.ts';
import type { LogPiece } from './log-text.ts';

/** What the page keeps; the daemon keeps no more unless it is told to. */
const MAX_CHARACTERS = 1024 * 1024;
const MAX_NODES = 20_000;
/** The newest ones that can be chosen. */
const MAX_CHOICES = 100;

interface LogProps {
  id: string;
  attempts: number;
}

/** What a run prints, of each attempt, as it comes. */
export function Log({ id, attempts }: LogProps) {
  const [chosen, setChosen] = useState<number | null>(null);
  const attempt = chosen ?? Math.max(1, attempts);
  const choices = Array.from({ length: Math.min(attempts, MAX_CHOICES) }, (_, n) => attempts - n);
  return (
    <>
      {attempts > 1 && (
        <label class="log-choice">
          Attempt{' '}
          <select value={attempt} onChange={({ currentTarget: { value } }) => setChosen(Number(value))}>
            {choices.map((one) => (
              <option key={one} value={one}>
                {one}
              </option>
            ))}
          </select>
        </label>
      )}
      <LogOfAttempt key={attempt} id={id} attempt={attempt} />
    </>
  );
}

function LogOfAttempt({ id, attempt }: { id: string; attempt: number }) {
  const box = useRef<HTMLPreElement>(null);
  const [state, setState] = useState('');
  useEffect(() => {
    const { current } = box;
    if (current === null) return undefined;
    const sheet = createSheet(current);
    return followLog(id, attempt, { ...sheet, state: setState });
  }, [id, attempt]);
  return (
    <>
      <pre class="log user" ref={box} tabIndex={0} role="log" aria-label={`Log of attempt ${attempt}`} />
      {state !== '' && <p class="quiet">{state}</p>}
    </>
  );
}

/** Text becomes nodes of text, whatever it looks like. It stays at its end where the reader is there. */
function createSheet(box: HTMLPreElement) {
  let kept = 0;
  const add = (nodes: readonly Node[]): void => {
    const isAtEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 20;
    for (const node of nodes) {
      box.append(node);
      kept += node.textContent?.length ?? 0;
    }
    while ((kept > MAX_CHARACTERS || box.childNodes.length > MAX_NODES) && box.firstChild !== box.lastChild) {
      kept -= box.firstChild?.textContent?.length ?? 0;
      box.firstChild?.remove();
    }
    if (isAtEnd) box.scrollTop = box.scrollHeight;
  };
  return {
    pieces: (pieces: readonly LogPiece[]) => {
      add(pieces.map(nodeOf));
    },
    gap: (bytes: number) => {
      add([
        nodeOf({
          text: `\n… ${bytes.toLocaleString('en')} bytes were left out here …\n`,
          classes: 'log-gap',
        }),
      ]);
    },
  };
}

function nodeOf({ text, classes }: LogPiece): Node {
  if (classes === '') return document.createTextNode(text);
  const node = document.createElement('span');
  node.className = classes;
  node.textContent = text;
  return node;
}
