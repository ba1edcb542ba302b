// The program: flags in, exit codes out. Everything else is wired by a role.
import { CommanderError } from 'commander'
import { makeProtoAPlainKey } from '#apimachinery/meta/index.ts'
import { codeOf, exitCodeOf, messageOf, usageCode } from './process/exit-error.ts'
import { createProgram } from './program.ts'

// Tenants' objects have maps with any keys.
makeProtoAPlainKey()

try {
  await createProgram().parseAsync()
  process.exitCode = 0
} catch (error) {
  process.exitCode = error instanceof CommanderError ? codeOfCommander(error) : codeOf(error)
  const isTold = error instanceof CommanderError || exitCodeOf(error) !== undefined
  if (!isTold) console.error(`kcp: ${messageOf(error)}`)
  if (process.env['KCP_DEBUG'] !== undefined) console.error(error)
}
// A handle left open must not keep a stopped process alive.
process.exit()

/** Commander has printed the help, the version or the mistake. */
function codeOfCommander({ exitCode }: CommanderError): number {
  return exitCode === 0 ? 0 : usageCode
}
