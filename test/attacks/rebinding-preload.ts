/**
 * Loaded into a daemon by `--import`: its name server is hostile. The first question for `rebinding.example` is answered
 * with an address that may be called, for no time at all, and every later one with that of the metadata service.
 */
import { type RecordWithTtl, promises } from 'node:dns';

let asked = 0;
promises.Resolver.prototype.resolve4 = (() => {
  asked += 1;
  const address = asked === 1 ? '127.0.0.1' : '169.254.169.254';
  return Promise.resolve([{ address, ttl: 0 } satisfies RecordWithTtl]);
}) as unknown as typeof promises.Resolver.prototype.resolve4;
