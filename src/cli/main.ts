// The program: flags in, exit codes out. Everything else is wired by a role.
import { Command } from 'commander'
import { makeProtoAPlainKey } from '#apimachinery/meta/index.ts'
import { programVersion } from '#telemetry/index.ts'
import { commands, completeCommand } from './commands.ts'
import { exitCodeOf, messageOf } from './process/exit-error.ts'

// Tenants' objects have maps with any keys.
makeProtoAPlainKey()

const program = new Command('kcp')
  .description('logical clusters for many tenants, whose workloads run transparently on many member clusters')
  .version(programVersion)
  .showHelpAfterError('(try --help)')

for (const command of commands()) program.addCommand(command)
program.addCommand(completeCommand(program), { hidden: true })
// Separately created commands inherit no settings from the program.
for (const command of commandsOf(program)) command.showHelpAfterError('(try --help)')

try {
  await program.parseAsync()
  process.exitCode = 0
} catch (error) {
  const code = exitCodeOf(error)
  if (code === undefined) console.error(`kcp: ${messageOf(error)}`)
  if (process.env['KCP_DEBUG'] !== undefined) console.error(error)
  process.exitCode = code ?? 1
}
// A handle left open must not keep a stopped process alive.
process.exit()

function commandsOf(parent: Command): Command[] {
  return parent.commands.flatMap((command) => [command, ...commandsOf(command)])
}
