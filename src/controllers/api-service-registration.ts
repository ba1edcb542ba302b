// Local APIServices, as kube-apiserver registers them: one for each built-in group version, restored at every start,
// and one for each group version that CustomResourceDefinitions serve. APIServices that tenants wrote are left alone.
import { groupResourceText, type KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError, tolerate } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'
import { type ControllerContext, reconcileChanged } from './framework.ts'
import { apiServices, customResourceDefinitions } from './resources.ts'

/** Upstream, kube-apiserver itself does the work of this controller. */
const fieldManager = 'kube-apiserver'
const managed = 'kube-aggregator.kubernetes.io/automanaged'

/**
 * Restores APIServices of built-in group versions that were deleted before this process first loaded their logical
 * cluster, until the signal aborts.
 */
export async function startBuiltInRegistration(context: ControllerContext): Promise<void> {
  const resource = groupResourceText(apiServices)
  await reconcileChanged(context, {
    name: 'built-in-registration',
    follow: {
      [resource]: ({ key: { cluster, name }, exists, isNew }, enqueue) => {
        // An APIService that is deleted while this process runs stays deleted until the next start, as upstream.
        if (!exists && isNew) enqueue({ cluster, name })
      },
    },
    reconcile: async ({ cluster, name }, { client, signal }) => {
      const initial = context.graph.initial({ cluster, resource, namespace: '', name })
      if (initial?.metadata.labels?.[managed] !== 'onstart') return
      const { apiVersion, kind, metadata } = initial
      const object = { apiVersion, kind, metadata: { name, labels: metadata.labels ?? {} }, spec: initial['spec'] }
      await client.create<KubeObject>(apiServices, object, { fieldManager, signal }).catch(tolerate('AlreadyExists'))
    },
  })
}

/** Definitions are written several times when they are created; one reconcile suffices. */
const collectMs = 100
/** Priorities as in upstream's crdregistration_controller.go. */
const priorities = { groupPriorityMinimum: 1000, versionPriority: 100 }

/** Reconciles the group of every CustomResourceDefinition that changes, until the signal aborts. */
export async function startCrdRegistration(context: ControllerContext): Promise<void> {
  await reconcileChanged(context, {
    name: 'crd-registration',
    follow: {
      // The name of a definition is PLURAL.GROUP.
      [groupResourceText(customResourceDefinitions)]: ({ key: { cluster, name } }, enqueue) =>
        enqueue({ cluster, name: afterDot(name) }, collectMs),
      [groupResourceText(apiServices)]: ({ key: { cluster, name }, exists, labels }, enqueue) => {
        if (!exists && labels?.[managed] === 'true') enqueue({ cluster, name: afterDot(name) }, collectMs)
      },
    },
    reconcile: async ({ cluster, name: group }, { client, signal }) => {
      const registered = await context.graph.select(
        cluster,
        groupResourceText(apiServices),
        (candidate) => candidate.contains(`"${group}"`) && candidate.labels[managed] === 'true',
        signal,
      )
      const names = registered.map(({ key }) => key.name).filter((name) => afterDot(name) === group)
      await register(client, { group, registered: new Set(names) }, signal)
    },
  })
}

function afterDot(name: string): string {
  return name.slice(name.indexOf('.') + 1)
}

/** Creates the missing APIServices of a group, and deletes those of versions that are not served any more. */
async function register(
  client: KubeClient,
  { group, registered }: { group: string; registered: ReadonlySet<string> },
  signal: AbortSignal,
): Promise<void> {
  const served = new Map(
    (await servedVersions(client, group, signal)).map((version) => [`${version}.${group}`, version]),
  )
  for (const [name, version] of served) {
    if (registered.has(name)) continue
    const object = {
      apiVersion: 'apiregistration.k8s.io/v1',
      kind: 'APIService',
      metadata: { name, labels: { [managed]: 'true' } },
      spec: { group, version, ...priorities },
    }
    await client.create<KubeObject>(apiServices, object, { fieldManager, signal }).catch(tolerate('AlreadyExists'))
  }
  for (const name of registered)
    if (!served.has(name)) await client.delete(apiServices, { name }, { signal }).catch(tolerate('NotFound'))
}

async function servedVersions(client: KubeClient, group: string, signal: AbortSignal): Promise<string[]> {
  try {
    const found = (await client.raw(`/apis/${group}`, { signal })) as { versions?: { version: string }[] }
    return found.versions?.map(({ version }) => version) ?? []
  } catch (error) {
    if (isStatusError(error) && error.code === 404) return []
    throw error
  }
}
