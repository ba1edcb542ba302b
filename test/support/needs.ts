// What a test needs of the machine it runs on.

import { runCommand } from './command.ts'
import { ensureSystemPackages } from './system-packages.ts'

/**
 * For `before(async function () { await needsNodes(this) })`: where real nodes cannot run, the tests are skipped by
 * name with the reason. With CI=true nothing expected may be skipped, so there it is a failure.
 */
export async function needsNodes(context: Mocha.Context): Promise<void> {
  context.timeout(15 * 60_000) // packages may have to be installed first
  skipUnless(context, await ensureSystemPackages())
}

/**
 * For tests in other languages: where one of these commands does not run (each is a program and what makes it say its
 * version), the tests are skipped by name; with CI=true it is a failure.
 */
export async function needsTools(context: Mocha.Context, commands: readonly (readonly string[])[]): Promise<void> {
  for (const [program = '', ...args] of commands)
    try {
      await runCommand(program, args)
    } catch (error) {
      skipUnless(context, `"${[program, ...args].join(' ')}" does not run here: ${String(error)}`)
    }
}

/** Skips with `reason`, when there is one; fails instead with CI=true. */
export function skipUnless(context: Mocha.Context, reason: string | undefined): void {
  if (reason === undefined) return
  const suite = context.test?.parent
  const title = suite?.fullTitle() ?? 'a test'
  if (process.env.CI === 'true') throw new Error(`"${title}" must run in CI, but ${reason}`)
  const names: string[] = []
  suite?.eachTest((test) => names.push(test.fullTitle()))
  for (const name of names.length > 0 ? names : [title]) process.stderr.write(`SKIPPED: ${name}: ${reason}\n`)
  context.skip()
}
