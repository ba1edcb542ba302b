// Installs our CustomResourceDefinitions and waits until the cluster serves them.
import { childSignal, sleep } from '#async/index.ts'
import { gone, isStatusError } from '#apimachinery/status/index.ts'
import type { CustomResourceDefinition } from '#crds/index.ts'
import type { KubeClient } from '#client/index.ts'

const customResourceDefinitions = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  resource: 'customresourcedefinitions',
} as const

interface Served extends CustomResourceDefinition {
  status?: { conditions?: { type: string; status: string; message?: string }[] }
}

/**
 * Applies the CustomResourceDefinitions and resolves when all are served. May run again at any time. Rejects with the
 * server's StatusError, for example if a name is taken.
 */
export async function ensureCrds(
  client: KubeClient,
  { crds, signal }: { crds: readonly CustomResourceDefinition[]; signal: AbortSignal },
): Promise<void> {
  await Promise.all(
    crds.map(async (crd) => {
      await ensureCrd(client, crd, signal)
      await untilServed(client, crd, signal)
    }),
  )
}

const maxWaitMs = 30_000
const retryMs = 100

/** A busy server answers 404 for some time after it has set condition Established. */
async function untilServed(client: KubeClient, { spec }: CustomResourceDefinition, signal: AbortSignal): Promise<void> {
  const startedAt = performance.now()
  for (const { name: version } of spec.versions.filter(({ served }) => served)) {
    const gvr = { group: spec.group, version, resource: spec.names.plural }
    for (;;) {
      try {
        await client.list(gvr, { limit: 1, metadataOnly: true, signal })
        break
      } catch (error) {
        if (!isStatusError(error, 'NotFound') || performance.now() - startedAt > maxWaitMs) throw error
      }
      await sleep(retryMs, signal)
    }
  }
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
  throw gone(`CustomResourceDefinition "${name}" was deleted, or its watch ended, before it was Established`)
}

function isEstablished({ status }: Served): boolean {
  return status?.conditions?.some(({ type, status }) => type === 'Established' && status === 'True') ?? false
}
