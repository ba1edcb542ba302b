// `kcp seal-key`: replaces the key with which tenants' Secrets are sealed in a host, while kcp runs.
import { Command } from 'commander'
import { loadedLate } from './loaded-late.ts'
import type { SealKeyStep } from './run-seal-key.ts'

/** The command `seal-key`, with one subcommand for each step, in order. */
export function sealKeyCommand(): Command {
  const step = (name: SealKeyStep, description: string): Command =>
    new Command(name)
      .description(description)
      .option('--host-kubeconfig <file>', 'kubeconfig of the host cluster (default: KUBECONFIG, or the pod we run in)')
      .action(
        loadedLate(async () => {
          const { runSealKey } = await import('./run-seal-key.ts')
          return { run: runSealKey(name) }
        }),
      )
  return new Command('seal-key')
    .description("replace the key with which tenants' Secrets are sealed in a host: add, use, reseal, drop")
    .addCommand(step('add', 'first: add a key that seals nothing yet'))
    .addCommand(step('use', 'second, after a restart: seal with it from now on'))
    .addCommand(
      step('reseal', 'third, after a restart: seal all Secrets with the new key that a former key has sealed'),
    )
    .addCommand(step('drop', 'last: remove former keys, without which older backups of the host cannot be read'))
}
