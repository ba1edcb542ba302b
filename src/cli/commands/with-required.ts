// A flag that must be given. Commander's own check comes before that of unknown flags, so a misspelt one would be called missing.
import type { Command } from 'commander'

/** Adds a flag such as `--root-dir <dir>`, without which the command is refused. */
export function withRequired(command: Command, flags: string, description: string): Command {
  const option = command.createOption(flags, description)
  return command.addOption(option).hook('preAction', () => {
    if (command.getOptionValue(option.attributeName()) === undefined)
      command.error(`error: required option '${flags}' not specified`, {
        code: 'commander.missingMandatoryOptionValue',
      })
  })
}
