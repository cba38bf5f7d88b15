/**
 * Installs programs of Python into a folder of node_modules/.cache, with all that they need pinned. Exits 2 where Python lacks.
 *
 *     node scripts/python-tools.ts FOLDER REQUIREMENTS
 */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

const [folder = '', requirements = ''] = process.argv.slice(2);
const home = join(import.meta.dirname, '..', 'node_modules', '.cache', folder);
if (hasPython()) {
  execFileSync('/usr/bin/python3', ['-m', 'venv', home], { stdio: 'inherit' });
  const quiet = ['--quiet', '--disable-pip-version-check', '--requirement', requirements];
  execFileSync(join(home, 'bin', 'pip'), ['install', ...quiet], { stdio: 'inherit' });
} else {
  console.error('there is no python3 with venv; Debian, Ubuntu: apt-get install python3-venv');
  process.exitCode = 2;
}

function hasPython(): boolean {
  try {
    execFileSync('/usr/bin/python3', ['-c', 'import ensurepip, venv'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
