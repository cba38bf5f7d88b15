import { signal } from '@preact/signals';
import type { Maintenance } from '../../../clients/typescript/src/generated/types.gen.ts';

/** As last told; the banner asks, and the page that changes it says so here. */
export const maintenance = signal<Maintenance | null>(null);
