import { availableParallelism, cpus, release, totalmem, type } from 'node:os';

export interface Machine {
  cores: number;
  cpu: string;
  memoryGiB: number;
  system: string;
  node: string;
}

export function describeMachine(): Machine {
  return {
    cores: availableParallelism(),
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: `${type()} ${release()}`,
    node: process.versions.node,
  };
}
