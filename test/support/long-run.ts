// `make test-long` runs the same specs with more rounds and seeds, and the specs of test/long besides.

/** True in `make test-long`. */
export const isLongRun = process.env['KCP_TEST_LONG'] === '1'

/** How often a test repeats what it does: `short` in `make test`, `long` in `make test-long`. */
export function rounds({ short, long }: { short: number; long: number }): number {
  return isLongRun ? long : short
}

/** A test of `make test-long` alone: too slow for `make test`, which has a shorter test of the same behaviour. */
export function itInLongRun(title: string, test: Mocha.AsyncFunc): void {
  if (isLongRun) it(title, test)
}

/** The same for a whole group of tests, with its hooks. */
export function describeInLongRun(title: string, suite: (this: Mocha.Suite) => void): void {
  if (isLongRun) describe(title, suite)
}
