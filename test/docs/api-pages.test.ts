// @module-tag long
import { test } from 'vitest';
import { type Api, startApi } from '../api/api.ts';
import { type Block, askedBy, blocksOf, kindOf, pages, placeOf } from './blocks.ts';
import { expectAnswer } from './expect-answer.ts';
import { listingOf } from './listed.ts';
import { STAGES } from './stages.ts';
import { type Said, runPage } from './shell.ts';

/** Their blocks wait for fires: firing-pages.test.ts, recipes.test.ts. */
const FIRING_PAGES = ['README.md', 'docs/quickstart.md', 'docs/recipes.md', 'examples/README.md'];
const isRun = (block: Block) => ['run', 'statement'].includes(kindOf(block)) && listingOf(block) === undefined;
const here = pages().filter((page) => !FIRING_PAGES.includes(page) && blocksOf(page).some(isRun));

test.for(here)('the blocks of %s do what the page says', async (page) => {
  const { tokens = [], prepare, after, shapes = [] } = STAGES[page] ?? {};
  const api = await startApi(undefined, {
    apiTokens: tokens.map(({ known }) => known),
    takesSecretFiles: true,
    sendsMail: true,
    mailToDomains: [],
  });
  try {
    const [token] = tokens;
    const env = token === undefined ? {} : { FIRELOCK_TOKEN: token.secret };
    const stage = { url: api.url, env, ...(await prepare?.(api)) };
    const said = await runPage(page, stage);
    expectAnswers(page, said, shapes);
    await runStatements(page, api);
    await after?.(api, said);
  } finally {
    await api.stop();
  }
});

function expectAnswers(page: string, said: readonly Said[], shapes: readonly string[]): void {
  for (const answer of blocksOf(page).filter((block) => kindOf(block) === 'answer')) {
    const asked = said.find(({ block }) => block.line === askedBy(answer)?.line);
    expectAnswer(placeOf(answer), JSON.parse(answer.text), asked?.answers ?? [], shapes);
  }
}

async function runStatements(page: string, { sql }: Api): Promise<void> {
  for (const block of blocksOf(page)) if (kindOf(block) === 'statement' && isRun(block)) await sql.unsafe(block.text);
}
