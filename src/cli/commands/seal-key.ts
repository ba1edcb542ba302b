// `kcp seal-key`: replaces the key with which tenants' Secrets are sealed in a host, while kcp runs.
import { Command } from 'commander'
import { ExitError } from '../process/exit-error.ts'
import { processSignal } from '../process/process-signal.ts'
import { installationNamespace, openHost, type Host } from '../roles/host-installation.ts'
import { countFormerSecrets, resealSecrets } from '../roles/reseal-secrets.ts'
import { changeSealKeys, withNextKey, withNextKeyInUse, withoutFormerKeys } from '../roles/seal-keys.ts'

interface Flags {
  readonly hostKubeconfig?: string
}

const restart = 'restart every kcp apiserver: kubectl -n kcp-system rollout restart deployment/kcp-apiserver'

/** The command `seal-key`, with one subcommand for each step, in order. */
export function sealKeyCommand(): Command {
  const step = (
    name: string,
    description: string,
    run: (host: Host, signal: AbortSignal) => Promise<string>,
  ): Command =>
    new Command(name)
      .description(description)
      .option('--host-kubeconfig <file>', 'kubeconfig of the host cluster (default: KUBECONFIG, or the pod we run in)')
      .action(async ({ hostKubeconfig }: Flags) => {
        const signal = processSignal()
        await using host = await openHost(hostKubeconfig)
        console.log(await run(host, signal))
      })
  return new Command('seal-key')
    .description("replace the key with which tenants' Secrets are sealed in a host: add, use, reseal, drop")
    .addCommand(step('add', 'first: add a key that seals nothing yet', add))
    .addCommand(step('use', 'second, after a restart: seal with it from now on', use))
    .addCommand(step('reseal', 'third, after a restart: seal anew what a former key has sealed', reseal))
    .addCommand(step('drop', 'last: remove former keys; backups of the host from before cannot be read any more', drop))
}

async function add({ client }: Host, signal: AbortSignal): Promise<string> {
  await changeSealKeys(client, { namespace: installationNamespace, change: withNextKey, signal })
  return `a key was added. Next: ${restart}; then kcp seal-key use`
}

async function use({ client }: Host, signal: AbortSignal): Promise<string> {
  await changeSealKeys(client, { namespace: installationNamespace, change: withNextKeyInUse, signal })
  return `the new key is the one that seals. Next: ${restart}; then kcp seal-key reseal`
}

async function reseal({ client }: Host, signal: AbortSignal): Promise<string> {
  const { resealed, left } = await resealSecrets(client, signal)
  if (left > 0) throw new ExitError(`${resealed} Secrets were sealed anew, ${left} were not: try again`)
  return `${resealed} Secrets were sealed anew. Next, when no backup from before is needed: kcp seal-key drop`
}

async function drop({ client }: Host, signal: AbortSignal): Promise<string> {
  const found = await countFormerSecrets(client, signal)
  if (found > 0) throw new ExitError(`${found} Secrets are still sealed with another key: kcp seal-key reseal`)
  await changeSealKeys(client, { namespace: installationNamespace, change: withoutFormerKeys, signal })
  return 'former keys are removed'
}
