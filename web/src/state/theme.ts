import { storedSignal } from './stored.ts';

const THEMES = ['system', 'light', 'dark'] as const;

export const theme = storedSignal('theme', THEMES, 'system');

/** What is drawn on a canvas reads colours, and must do so again when they change. */
export function applyTheme(): void {
  theme.subscribe((value) => {
    document.documentElement.dataset['theme'] = value;
  });
}
