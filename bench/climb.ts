/** How a step ended; `lost`: so badly that no further one can be tried. */
export type Step = 'good' | 'bad' | 'lost';

const UP = 1.5;
const DOWN = 2;
const LEAST = 10;
/** Each halves what is open between the last good step and the first bad one: the answer is right to 5 %. */
const HALVINGS = 3;

/**
 * The highest count up to `top` at which a step is good, looked for from `start` up, or down where that is bad already; 0 if
 * none is.
 * The step that ends the way up is tried twice, so that a slow moment of the machine does not end it.
 */
export async function climb(
  { start, top }: { start: number; top: number },
  step: (count: number) => Promise<Step>,
): Promise<number> {
  let [good, bad, lost] = [0, Infinity, false];

  async function attempt(count: number, tries: number): Promise<void> {
    for (let left = tries; left > 0 && !lost; left -= 1) {
      const outcome = await step(count);
      if (outcome === 'good') good = count;
      if (outcome === 'good') return;
      lost = outcome === 'lost';
    }
    bad = count;
  }

  for (let count = start; bad === Infinity && count <= top; count = Math.round(count * UP))
    await attempt(count, 2);
  while (good === 0 && bad > LEAST && !lost) await attempt(Math.round(bad / DOWN), 1);
  for (let left = HALVINGS; left > 0 && good > 0 && bad < Infinity && !lost; left -= 1) {
    await attempt(Math.round(Math.sqrt(good * bad)), 1);
  }
  return good;
}
