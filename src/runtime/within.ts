/** Whether the promise settles in time: true once it has resolved; rejects if it rejects before. */
export async function within(promise: Promise<unknown>, limitMs: number): Promise<boolean> {
  if (limitMs === Infinity) return promise.then(() => true);
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, limitMs, false);
  });
  try {
    return await Promise.race([promise.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
