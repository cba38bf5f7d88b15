import { computed, signal } from '@preact/signals';
import { storedSignal } from './stored.ts';

const THEMES = ['system', 'light', 'dark'] as const;

export const theme = storedSignal('theme', THEMES, 'system');

const systemDark = matchMedia('(prefers-color-scheme: dark)');
const isSystemDark = signal(systemDark.matches);

/** What is drawn on a canvas reads its colours, and must do so again when this changes. */
export const isDark = computed(() =>
  theme.value === 'system' ? isSystemDark.value : theme.value === 'dark',
);

export function applyTheme(): void {
  systemDark.addEventListener('change', ({ matches }) => (isSystemDark.value = matches));
  theme.subscribe((value) => {
    document.documentElement.dataset['theme'] = value;
  });
}
