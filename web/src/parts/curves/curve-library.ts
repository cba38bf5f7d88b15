import UPlot, { type Options } from 'uplot';
import './curve.css';

/** Draws into the element, follows its width, and returns what removes all of it. */
export function draw(
  element: HTMLElement,
  options: Options,
  at: readonly number[],
  series: readonly { values: readonly (number | null)[] }[],
): () => void {
  const plot = new UPlot(options, [[...at], ...series.map(({ values }) => [...values])], element);
  const sized = new ResizeObserver(() => {
    if (element.clientWidth > 0) plot.setSize({ width: element.clientWidth, height: options.height });
  });
  sized.observe(element);
  return () => {
    sized.disconnect();
    plot.destroy();
  };
}
