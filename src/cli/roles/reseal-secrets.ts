// Tenants' Secrets that another key than the installation's present one has sealed in the host.
import type { KubeClient } from '#client/index.ts'
import { resealRecords } from '#store/host/index.ts'
import { installationKeys } from './host-installation.ts'

/** Seals them anew. Resolves with how many, and how many are left: they changed meanwhile or cannot be opened. */
export async function resealSecrets(
  client: KubeClient,
  signal: AbortSignal,
): Promise<{ resealed: number; left: number }> {
  const { sealKey, otherSealKeys } = await installationKeys(client, signal)
  return await resealRecords({ client, sealKey, otherSealKeys, dryRun: false, signal })
}

/** How many there are. */
export async function countFormerSecrets(client: KubeClient, signal: AbortSignal): Promise<number> {
  const { sealKey, otherSealKeys } = await installationKeys(client, signal)
  return (await resealRecords({ client, sealKey, otherSealKeys, dryRun: true, signal })).resealed
}
