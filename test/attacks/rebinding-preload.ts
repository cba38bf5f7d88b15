/**
 * Loaded into a daemon by `--import`: its name server is hostile. The first question for `rebinding.example` is answered
 * with an address that may be called, and every later one with that of the metadata service.
 */
import dns from 'node:dns';
import { syncBuiltinESMExports } from 'node:module';

const lookup = dns.promises.lookup as (name: string, options: object) => Promise<unknown>;
let asked = 0;
dns.promises.lookup = ((name: string, options: object) => {
  if (name !== 'rebinding.example') return lookup(name, options);
  asked += 1;
  return Promise.resolve([{ address: asked === 1 ? '127.0.0.1' : '169.254.169.254', family: 4 }]);
}) as typeof dns.promises.lookup;
syncBuiltinESMExports();
