/** Loaded into each daemon by `--import`: it asks the campaign's name server, and none of this machine's. */
import { promises } from 'node:dns';

const servers = [process.env['CHAOS_NAME_SERVER'] ?? ''];
const resolver = promises.Resolver.prototype;

for (const family of ['resolve4', 'resolve6'] as const) {
  const resolve = resolver[family] as (this: promises.Resolver, ...args: unknown[]) => unknown;
  resolver[family] = function (this: promises.Resolver, ...args: unknown[]) {
    this.setServers(servers);
    return resolve.apply(this, args);
  } as never;
}
