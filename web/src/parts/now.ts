import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';

const now = signal(Date.now());
let users = 0;
let timer: ReturnType<typeof setInterval> | undefined;

/** This browser's clock, renewed every second while something shows it and the tab is seen. */
export function useNow(): number {
  useEffect(() => {
    users += 1;
    timer ??= setInterval(() => {
      if (!document.hidden) now.value = Date.now();
    }, 1000);
    return () => {
      users -= 1;
      if (users > 0) return;
      clearInterval(timer);
      timer = undefined;
    };
  }, []);
  return now.value;
}
