// Brings our CustomResourceDefinitions into a cluster and waits until it serves them.
import { childSignal } from '../async/index.ts'
import { gone } from '../apimachinery/status/index.ts'
import type { CustomResourceDefinition } from '../crds/index.ts'
import type { KubeClient } from '../client/index.ts'

const customResourceDefinitions = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  resource: 'customresourcedefinitions',
} as const

interface Served extends CustomResourceDefinition {
  status?: { conditions?: { type: string; status: string; message?: string }[] }
}

/**
 * Applies these CustomResourceDefinitions, as they are now, and resolves once all are Established. Harmless where they
 * are there already. Rejects with the server's StatusError, for example where a name is taken.
 */
export async function ensureCrds(
  client: KubeClient,
  { crds, signal }: { crds: readonly CustomResourceDefinition[]; signal: AbortSignal },
): Promise<void> {
  await Promise.all(crds.map((crd) => ensureCrd(client, crd, signal)))
}

async function ensureCrd(client: KubeClient, crd: CustomResourceDefinition, signal: AbortSignal): Promise<void> {
  const name = crd.metadata.name ?? ''
  const options = { fieldManager: 'kcp', force: true, signal }
  const applied = await client.patch<Served>(customResourceDefinitions, { name }, 'apply', crd, options)
  if (isEstablished(applied)) return
  using watching = childSignal(signal)
  const watch = client.watch<Served>(customResourceDefinitions, {
    fieldSelector: `metadata.name=${name}`,
    ...(applied.metadata.resourceVersion === undefined ? {} : { resourceVersion: applied.metadata.resourceVersion }),
    signal: watching.signal,
  })
  for await (const { type, object } of watch) {
    if (type === 'DELETED') break
    if (type !== 'BOOKMARK' && isEstablished(object)) return
  }
  throw gone(`CustomResourceDefinition "${name}" went away, or its watch ended, before it was Established`)
}

function isEstablished({ status }: Served): boolean {
  return status?.conditions?.some(({ type, status }) => type === 'Established' && status === 'True') ?? false
}
