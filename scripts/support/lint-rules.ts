/** Rules that oxlint lacks; .oxlintrc.json says which files they are for. */
interface Place {
  line: number;
  column: number;
}
interface Part {
  type: string;
  loc: { start: Place; end: Place };
}
interface NewExpression extends Part {
  callee: { type: string; name?: string };
  arguments: unknown[];
}
interface Context {
  sourceCode: { lines: string[]; ast: { tokens: Part[] }; getAllComments: () => Part[] };
  report: (fault: { message: string; loc: Part['loc'] }) => void;
}

const CODE = 120;
const COMMENT = 140;
/** What cannot be broken without a change of what it says. */
const WHOLE = ['String', 'Template', 'RegularExpression', 'JSXText'];

/** A line of code has 120 characters at most, one of a comment 140; one with a text, a pattern or an address may be longer. */
const lineLength = {
  create: ({ sourceCode, report }: Context) => ({
    Program: () => {
      const { lines, ast } = sourceCode;
      if (lines.every((line) => line.length <= CODE)) return;
      const whole = linesOf(ast.tokens.filter(({ type }) => WHOLE.includes(type)));
      const comments = linesOf(
        sourceCode.getAllComments().filter(({ loc: { start } }) => {
          const before = lines[start.line - 1]?.slice(0, start.column);
          return before !== undefined && /^[\s{]*$/.test(before);
        }),
      );
      for (const [index, line] of lines.entries()) {
        const most = comments.has(index + 1) ? COMMENT : CODE;
        if (line.length <= most || whole.has(index + 1) || /[^:/?#]:\/\/[^?#]/.test(line)) continue;
        const place = { line: index + 1, column: 0 };
        report({
          message: `This line has ${line.length} characters; ${most} are the most.`,
          loc: { start: place, end: { ...place, column: line.length } },
        });
      }
    },
  }),
};

function linesOf(parts: Part[]): Set<number> {
  return new Set(
    parts.flatMap(({ loc: { start, end } }) =>
      Array.from({ length: end.line - start.line + 1 }, (_, index) => start.line + index),
    ),
  );
}

const timeOfItsOwn = {
  create: ({ report }: Context) => ({
    NewExpression: ({ callee, arguments: given, loc }: NewExpression) => {
      if (callee.name === 'Date' && given.length === 0) report({ message: 'Time comes from runtime/clock.ts.', loc });
    },
  }),
};

// oxlint takes a plugin by its default export only.
export default {
  meta: { name: 'house' },
  rules: { 'line-length': lineLength, 'time-of-its-own': timeOfItsOwn },
};
