// The action of a command, loaded when the command runs: `--help` and the other commands do not wait for the modules of it.

/** An action that loads its module and calls `run` of it. Rejects with what loading or `run` rejects with. */
export function loadedLate<Args extends unknown[]>(
  load: () => Promise<{ readonly run: (...args: Args) => Promise<void> }>,
): (...args: Args) => Promise<void> {
  return async (...args) => {
    const { run } = await load()
    await run(...args)
  }
}
