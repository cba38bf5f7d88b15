/** What an instance may run out of itself, by the code of the error (errno(3)): neither a target nor the database is at fault. */
export const OWN_SHORTAGES: ReadonlyMap<string, string> = new Map([
  ['EMFILE', 'this process has no file descriptor left'],
  ['ENFILE', 'this machine has no file descriptor left'],
  ['EADDRNOTAVAIL', 'this machine has no port left for another connection'],
  ['ENOBUFS', 'this machine has no buffer left for another connection'],
  ['ENOMEM', 'this machine has no memory left'],
]);
