import { storedSignal } from './stored.ts';

const THEMES = ['system', 'light', 'dark'] as const;

export const theme = storedSignal('theme', THEMES, 'system');

export function applyTheme(): void {
  theme.subscribe((value) => {
    document.documentElement.dataset['theme'] = value;
  });
}
