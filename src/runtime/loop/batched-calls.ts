interface BatchOptions<Asked, Answer> {
  /** Answers in the order of the calls. If it rejects, every call of the batch does. */
  work: (asked: readonly Asked[]) => Promise<readonly Answer[]>;
  /** The greatest weight of a batch; a heavier call goes alone. */
  maxWeight?: number;
  weightOf?: (asked: Asked) => number;
}

interface Call<Asked, Answer> {
  asked: Asked;
  resolve: (answer: Answer) => void;
  reject: (error: unknown) => void;
}

/** Combines calls: calls of the same moment go together. Calls made while a batch is under way form the next batch. */
export function batchCalls<Asked, Answer>({
  work,
  maxWeight = Infinity,
  weightOf = () => 1,
}: BatchOptions<Asked, Answer>): (asked: Asked) => Promise<Answer> {
  let waiting: Call<Asked, Answer>[] = [];
  let busy = false;

  async function workAll(): Promise<void> {
    busy = true;
    // Calls of the same moment join the batch.
    await Promise.resolve();
    while (waiting.length > 0) await answerAll(nextBatch(), work);
    busy = false;
  }

  function nextBatch(): Call<Asked, Answer>[] {
    let weight = 0;
    const tooMuch = waiting.findIndex(
      ({ asked }, index) => (weight += weightOf(asked)) > maxWeight && index > 0,
    );
    const size = tooMuch === -1 ? waiting.length : tooMuch;
    const batch = waiting.slice(0, size);
    waiting = waiting.slice(size);
    return batch;
  }

  return (asked) =>
    new Promise((resolve, reject) => {
      waiting.push({ asked, resolve, reject });
      if (!busy) void workAll();
    });
}

async function answerAll<Asked, Answer>(
  batch: readonly Call<Asked, Answer>[],
  work: BatchOptions<Asked, Answer>['work'],
): Promise<void> {
  try {
    const answers = await work(batch.map(({ asked }) => asked));
    if (answers.length !== batch.length) throw new Error('a batch was not answered call by call');
    for (const [index, answer] of answers.entries()) batch[index]?.resolve(answer);
  } catch (error) {
    for (const { reject } of batch) reject(error);
  }
}
