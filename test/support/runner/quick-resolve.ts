/**
 * For processes of which tests start many. Node (24) parses all `exports` of a package anew for each of its modules that it loads, to
 * learn whether it is an ES module, and for each import of it; drizzle-orm's are 179 kB, and it has a hundred modules: a third of what
 * the daemon takes to start. They are the same modules with this and without it.
 */
import { type ResolveFnOutput, registerHooks } from 'node:module';

const PACKAGE = 'drizzle-orm';
const WITHIN = new RegExp(`/node_modules/${PACKAGE}/.+\\.js$`);
const resolved = new Map<string, ResolveFnOutput>();

registerHooks({
  resolve: (specifier, context, next) => {
    if (specifier.startsWith('.')) {
      const { parentURL } = context;
      if (parentURL === undefined || !WITHIN.test(parentURL)) return next(specifier, context);
      return { url: new URL(specifier, parentURL).href, format: 'module', shortCircuit: true };
    }
    if (!specifier.startsWith(PACKAGE)) return next(specifier, context);
    const known = resolved.get(specifier) ?? next(specifier, context);
    resolved.set(specifier, known);
    return { ...known, shortCircuit: true };
  },
});
