// The program: flags in, exit codes out. Everything else is wired by a role.
import { Command, CommanderError } from 'commander'
import { makeProtoAPlainKey } from '#apimachinery/meta/index.ts'
import { programVersion } from '#telemetry/index.ts'
import { commands, completeCommand } from './commands.ts'
import { addExamples } from './examples.ts'
import { codeOf, exitCodeOf, messageOf, usageCode } from './process/exit-error.ts'

// Tenants' objects have maps with any keys.
makeProtoAPlainKey()

const program = new Command('kcp')
  .description('logical clusters for many tenants, whose workloads run transparently on many member clusters')
  .version(programVersion)
  .addHelpText('after', '\nExit codes: 0 success, 1 failed, 2 wrong usage.')

for (const command of commands()) program.addCommand(command)
program.addCommand(completeCommand(program), { hidden: true })
addExamples(program)
// Separately created commands inherit no settings from the program.
for (const command of [program, ...commandsOf(program)]) command.showHelpAfterError('(try --help)').exitOverride()

try {
  await program.parseAsync()
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

function commandsOf(parent: Command): Command[] {
  return parent.commands.flatMap((command) => [command, ...commandsOf(command)])
}
