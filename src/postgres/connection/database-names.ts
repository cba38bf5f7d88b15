import { createResolver } from '../../runtime/names/resolver.ts';

/**
 * For the names of database servers only: they wait for no look-up of a target, however many there are. A failure is soon
 * asked anew, for firelock stands still without its database.
 */
export const resolveDatabaseName = createResolver({ failureSeconds: 1 });
