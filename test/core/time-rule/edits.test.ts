import { describe, expect, it } from 'vitest';
import { LONG } from '../../support/runner/long.ts';
import { casesOf, shardsOf } from './depth.ts';
import { playStory } from './edited-schedule.ts';
import { stories } from './edit-stories.ts';
import { type Story, firesOfStory } from './edits-oracle.ts';

const SHARDS = 10;
const PER_SHARD = 1000;
const FEW = casesOf(60);
const shards = shardsOf(SHARDS);

describe('while calendars and definitions are edited, no date fires twice and none is lost', () => {
  const holdsFor = (some: Story[]) => {
    const different = some.flatMap(difference);
    expect(different.slice(0, 5).join('\n'), `${different.length} of ${some.length} stories differ`).toBe('');
  };

  it(`in the first ${FEW} random stories`, () => {
    holdsFor(stories(0, FEW));
  });

  it.each(shards)(`in each of ${PER_SHARD} (part %d of ${SHARDS})`, { tags: [LONG] }, (shard) => {
    holdsFor(stories(shard, PER_SHARD));
  });
});

function difference(story: Story): string[] {
  const [expected, fired] = [firesOfStory(story), playStory(story)];
  const lost = [...expected].filter((at) => !fired.has(at)).map(inText);
  const more = [...fired].filter((at) => !expected.has(at)).map(inText);
  if (lost.length + more.length === 0) return [];
  const edits = story.edits.map((edit) => `\n  ${inText(edit.at)} ${JSON.stringify(edit)}`);
  const told = `${JSON.stringify({ ...story, edits: undefined })}${edits.join('')}`;
  return [`${told}\n  lost: ${lost.join(' ')}\n  made besides: ${more.join(' ')}`];
}

function inText(at: number): string {
  return new Date(at).toISOString().slice(0, 19);
}
