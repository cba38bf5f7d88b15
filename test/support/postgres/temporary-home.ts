import { chmod, mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Account, chooseAccount } from '../../../src/local-postgres/account.ts';
import { type Home, homeLink, openHome } from '../../../src/local-postgres/home.ts';

/** Where a server keeps its files, in a directory that begins so; and who runs it. */
export async function temporaryHome(
  prefix: string,
): Promise<{ home: Home; account: Account | undefined; remove: () => Promise<void> }> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), prefix)));
  // As root the server runs as someone else, who has to get in.
  await chmod(directory, 0o755);
  const account = await chooseAccount(homeLink(directory));
  const home = await openHome(directory, account);
  const remove = async () => {
    await rm(home.directory, { recursive: true, force: true });
    await rm(directory, { recursive: true, force: true });
  };
  return { home, account, remove };
}
