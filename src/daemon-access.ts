import { type Access, createAccess } from './api/access/access.ts';
import { createTrustedProxies } from './api/access/trusted-proxies.ts';
import { type ConnectionLimits, standardLimits } from './api/http/plugins/quiet-connections.ts';
import { readApiTokens } from './config/api-tokens.ts';
import { type BrowserRules, createBrowserRules } from './api/access/browser-rules.ts';
import type { Config } from './config/config.ts';
import type { Clock } from './runtime/clock.ts';
import type { EventBus } from './runtime/event-bus.ts';

interface DaemonAccess {
  access: Access;
  browserRules: BrowserRules;
  connectionLimits: ConnectionLimits;
  /** Reads the file of tokens again. If it has a fault, the tokens stay what they were, and the log says so. */
  rereadTokens: () => void;
}

export function createDaemonAccess(config: Config, deps: { clock: Clock; events: EventBus }): DaemonAccess {
  const { events } = deps;
  if (config.isOpenToAnybody) events.emit({ type: 'openToAnybody', host: config.host });
  const access = createAccess({ ...deps, ...config });
  const proxies = createTrustedProxies(config.trustedProxies);
  return {
    access,
    browserRules: createBrowserRules({ ...deps, ...config }),
    connectionLimits: standardLimits((address) => proxies.isOne(address)),
    rereadTokens: () => {
      const read = readApiTokens(config.tokenSources);
      if ('faults' in read) events.emit({ type: 'tokensKept', faults: read.faults });
      else access.replaceTokens(read.tokens);
    },
  };
}
