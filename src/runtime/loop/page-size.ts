/** Does work of a number of rows that fits into its time limit: fewer after a failure, which may have been too much at once. */
export interface PageSize {
  /** Hands the work the number of rows that it may take. @throws what the work throws */
  fit<T>(work: (limit: number) => Promise<T>): Promise<T>;
}

/** A failure divides the size by four, down to one row; a success doubles it, up to `most`. */
export function createPageSize(most: number): PageSize {
  let size = most;
  return {
    fit: async (work) => {
      try {
        const result = await work(size);
        size = Math.min(most, size * 2);
        return result;
      } catch (error) {
        size = Math.max(1, Math.floor(size / 4));
        throw error;
      }
    },
  };
}
