// Bodies of answers that nobody may read.

/**
 * The chunks of a generator. `end` is called when their reader gives them up, even before the first: a generator that
 * has not begun does not run its `finally`.
 */
export function endWhenGivenUp<T>(chunksOf: () => AsyncGenerator<T, undefined>, end: () => void): AsyncIterable<T> {
  return {
    [Symbol.asyncIterator]() {
      const chunks = chunksOf()
      return {
        next: () => chunks.next(),
        return: () => {
          end()
          return chunks.return(undefined)
        },
      }
    },
  }
}
