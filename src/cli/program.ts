// The program with all its commands, as `main.ts` runs it and as the reference is made of it.
import { Command } from 'commander'
import { programVersion } from '#telemetry/index.ts'
import { commands, completeCommand } from './commands.ts'
import { addExamples } from './examples.ts'

/** A new program; errors of usage are thrown as CommanderError. */
export function createProgram(): Command {
  const program = new Command('kcp')
    .description('logical clusters for many tenants, whose workloads run transparently on many member clusters')
    .version(programVersion)
    .addHelpText('after', '\nExit codes: 0 success, 1 failed, 2 wrong usage.')
  for (const command of commands()) program.addCommand(command)
  program.addCommand(completeCommand(program), { hidden: true })
  addExamples(program)
  // Separately created commands inherit no settings from the program.
  for (const command of [program, ...commandsOf(program)]) command.showHelpAfterError('(try --help)').exitOverride()
  return program
}

function commandsOf(parent: Command): Command[] {
  return parent.commands.flatMap((command) => [command, ...commandsOf(command)])
}
