// Checks what a test requires of the machine.

import { runCommand } from './command.ts'
import { chooseProvider } from './kind/engine.ts'
import { ensureSystemPackages } from './system-packages.ts'

/**
 * For `before(async function () { await needsNodes(this) })`: skips the tests by name, with the reason, where real
 * nodes cannot run. With CI=true they fail instead: nothing may be skipped there.
 */
export async function needsNodes(context: Mocha.Context): Promise<void> {
  context.timeout(15 * 60_000) // packages may have to be installed first
  // A container engine brings its own.
  const provider = await chooseProvider(process.env.KCP_TEST_CLUSTERS, { fallback: 'built-in' })
  if (provider.kind === 'built-in') skipUnless(context, await ensureSystemPackages())
}

/** For tests of block volumes and of volumes with a limit: skips them by name where no loop device can be made. */
export async function needsLoopDevices(context: Mocha.Context): Promise<void> {
  const { code, stderr } = await runCommand('losetup', ['-f'], { expectCode: 'any' })
  skipUnless(context, code === 0 ? undefined : `this machine has no loop devices: ${stderr.trim()}`)
}

/**
 * For tests in other languages: skips them by name if one of these commands does not run (a program with the arguments
 * that print its version); with CI=true they fail.
 */
export async function needsTools(context: Mocha.Context, commands: readonly (readonly string[])[]): Promise<void> {
  for (const [program = '', ...args] of commands)
    try {
      await runCommand(program, args)
    } catch (error) {
      skipUnless(context, `"${[program, ...args].join(' ')}" does not run here: ${String(error)}`)
    }
}

/** Skips with `reason` if there is one; fails instead with CI=true. */
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
