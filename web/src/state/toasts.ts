import { signal } from '@preact/signals';

interface Toast {
  id: number;
  kind: 'done' | 'failed';
  text: string;
}

export const toasts = signal<readonly Toast[]>([]);

const SHOWN_MS = 8_000;
let lastId = 0;

export function toast(kind: Toast['kind'], text: string): void {
  lastId += 1;
  const id = lastId;
  toasts.value = [...toasts.value, { id, kind, text }];
  setTimeout(() => {
    dismiss(id);
  }, SHOWN_MS);
}

export function dismiss(id: number): void {
  toasts.value = toasts.value.filter((one) => one.id !== id);
}
