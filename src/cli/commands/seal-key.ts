// `kcp seal-key`: replaces the key with which tenants' Secrets are sealed in a host, while kcp runs.
import { ExitError } from '#cli/process/exit-error.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import {
  type Host,
  installationKeys,
  installationNamespace,
  publishedStore,
  openHost,
} from '#cli/roles/host-installation.ts'
import { changeSealKeys, withNextKey, withNextKeyInUse, withoutFormerKeys } from '#cli/roles/seal-keys.ts'
import type { KubeClient } from '#client/index.ts'
import { resealRecords } from '#store/host/index.ts'

interface Flags {
  readonly hostKubeconfig?: string
}

/** The subcommands, in the order in which an admin runs them. */
export type SealKeyStep = 'add' | 'use' | 'reseal' | 'drop'

const restart = 'restart every kcp apiserver: kubectl -n kcp-system rollout restart deployment/kcp-apiserver'

/** Action of the subcommand: the step on the host, then a line that names the next step. */
export function runSealKey(step: SealKeyStep): (flags: Flags) => Promise<void> {
  return async ({ hostKubeconfig }) => {
    const signal = processSignal()
    await using host = await openHost(hostKubeconfig)
    console.log(await steps[step](host, signal))
  }
}

const steps: Readonly<Record<SealKeyStep, (host: Host, signal: AbortSignal) => Promise<string>>> = {
  add,
  use,
  reseal,
  drop,
}

async function add({ client }: Host, signal: AbortSignal): Promise<string> {
  await changeSealKeys(client, { namespace: installationNamespace, change: withNextKey, signal })
  return `a key was added. Next: ${restart}; then kcp seal-key use`
}

async function use({ client }: Host, signal: AbortSignal): Promise<string> {
  await changeSealKeys(client, { namespace: installationNamespace, change: withNextKeyInUse, signal })
  return `the new key will seal after a restart. Next: ${restart}; then kcp seal-key reseal`
}

async function reseal({ client }: Host, signal: AbortSignal): Promise<string> {
  await requireRecords(client, signal)
  const { resealed, left } = await resealSecrets(client, signal)
  if (left > 0) throw new ExitError(`${resealed} Secrets were sealed with the new key, ${left} were not: try again`)
  return `${resealed} Secrets were sealed with the new key. Next, when no older backup is needed any more: kcp seal-key drop`
}

async function drop({ client }: Host, signal: AbortSignal): Promise<string> {
  await requireRecords(client, signal)
  const found = await countFormerSecrets(client, signal)
  if (found > 0) throw new ExitError(`${found} Secrets are still sealed with another key: kcp seal-key reseal`)
  await changeSealKeys(client, { namespace: installationNamespace, change: withoutFormerKeys, signal })
  return 'former keys are removed'
}

/** Throws ExitError if Secrets are not in the host: they are not sealed anew there, and could not be opened without the former key. */
async function requireRecords(client: KubeClient, signal: AbortSignal): Promise<void> {
  const store = await publishedStore(client, signal)
  if (store === undefined) return
  throw new ExitError(
    `the logical clusters are in ${store}, where Secrets stay sealed with the key that they were written with: former keys are kept`,
  )
}

/**
 * Seals the Secrets of former keys with the current key. Resolves with the number of sealed Secrets, and of those left
 * because they changed meanwhile or cannot be opened.
 */
async function resealSecrets(client: KubeClient, signal: AbortSignal): Promise<{ resealed: number; left: number }> {
  const { sealKey, otherSealKeys } = await installationKeys(client, signal)
  return await resealRecords({ client, sealKey, otherSealKeys, dryRun: false, signal })
}

/** The number of Secrets that another key has sealed. */
async function countFormerSecrets(client: KubeClient, signal: AbortSignal): Promise<number> {
  const { sealKey, otherSealKeys } = await installationKeys(client, signal)
  return (await resealRecords({ client, sealKey, otherSealKeys, dryRun: true, signal })).resealed
}
