import { z } from 'zod';

/** One route; `url` is a pattern such as `/runs/:id`. */
interface Route {
  url?: string | undefined;
  method: string | string[];
  schema?: { params?: unknown } | undefined;
}

/** Which methods the routes take at which path. */
interface KnownPaths {
  add(route: Route): void;
  /** Sorted; empty: there is nothing at this path. */
  methodsAt(path: string): string[];
  /**
   * False: the path belongs to another route, and as a parameter of this one it would only be wrong (`batch` as the id
   * of a run).
   */
  isMeantFor(path: string, route: Route): boolean;
}

export function createKnownPaths(): KnownPaths {
  const routes: Route[] = [];
  const isMeantFor: KnownPaths['isMeantFor'] = (path, { url = '', schema }) => {
    if (!url.includes(':') || !routes.some((other) => other.url === path)) return true;
    return !(schema?.params instanceof z.ZodType) || schema.params.safeParse(parametersOf(url, path)).success;
  };
  return {
    add: (route) => routes.push(route),
    methodsAt: (path) => {
      const there = routes.filter((route) => matches(route.url ?? '', path) && isMeantFor(path, route));
      return [...new Set(there.flatMap(({ method }) => method))].sort();
    },
    isMeantFor,
  };
}

function matches(url: string, path: string): boolean {
  const pattern = url.split('/');
  const steps = path.split('/');
  return (
    pattern.length === steps.length &&
    pattern.every((step, index) => step === steps[index] || (step.startsWith(':') && steps[index] !== ''))
  );
}

function parametersOf(url: string, path: string): Record<string, string> {
  const steps = path.split('/');
  return Object.fromEntries(
    url
      .split('/')
      .flatMap((step, index) => (step.startsWith(':') ? [[step.slice(1), steps[index] ?? '']] : [])),
  );
}
