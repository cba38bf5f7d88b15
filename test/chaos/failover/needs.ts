import { execFileSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { findProgram, isExecutable } from '../../../scripts/support/programs-here.ts';

/** Where the programs are that a cluster consists of. */
export interface Programs {
  patroni: string;
  etcd: string;
  haproxy: string;
  /** The folder of PostgreSQL's own programs. */
  postgres: string;
}

const PACKAGES = 'patroni etcd-server haproxy python3-psycopg2 python3-etcd postgresql-15';
export const HOW_TO_INSTALL = `Debian 12: RUNLEVEL=1 apt-get install --no-install-recommends ${PACKAGES}`;

/** The programs, or what is missing of them. */
export function findPrograms(): Programs | { missing: string[] } {
  const missing: string[] = [];
  const found = (name: string, path: string | undefined): string => {
    if (path === undefined) missing.push(name);
    return path ?? '';
  };
  const programs = {
    patroni: found('patroni', findProgram('patroni')),
    etcd: found('etcd', findProgram('etcd')),
    haproxy: found('haproxy', findProgram('haproxy')),
    postgres: found('PostgreSQL with pg_basebackup and pg_rewind', newestPostgres()),
  };
  if (!hasPython('psycopg2')) missing.push('python3-psycopg2');
  if (!hasPython('etcd')) missing.push('python3-etcd');
  return missing.length > 0 ? { missing } : programs;
}

/** The embedded servers lack both: without them no standby comes about, and no old primary comes back. */
function newestPostgres(): string | undefined {
  const folders = globSync('/usr/lib/postgresql/*/bin');
  folders.sort((one, other) => majorOf(other) - majorOf(one));
  return folders.find((folder) =>
    ['postgres', 'pg_basebackup', 'pg_rewind'].every((name) => isExecutable(join(folder, name))),
  );
}

function majorOf(folder: string): number {
  return Number(/\d+/.exec(folder)?.[0]);
}

/** Of the system's Python, which Debian's patroni runs on. */
function hasPython(module: string): boolean {
  try {
    execFileSync('/usr/bin/python3', ['-c', `import ${module}`], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
