// The controller of ServiceExports in logical clusters whose tenants installed the Multi-Cluster Services API. Other
// logical clusters cost nothing: two watches over all logical clusters show every export.
import { groupResourceText, type GroupVersionResource, type KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError, serviceUnavailable, tolerate } from '#apimachinery/status/index.ts'
import { systemClock, timestamp, type Clock } from '#async/index.ts'
import { keyFor, parseKey, type KubeClient } from '#client/index.ts'
import { clusterSetServiceName, exportedNameOf, serviceExports, serviceImports } from '#crds/index.ts'
import type { OperatorContext, OperatorController } from '#operator/framework/operator-context.ts'
import { loopWithMembers } from '#operator/framework/loop.ts'
import { planExport, planRefusal, type Part, type Step } from './plan-service-exports.ts'

const services = { group: '', version: 'v1', resource: 'services' } as const
const slices = { group: 'discovery.k8s.io', version: 'v1', resource: 'endpointslices' } as const
const serviceNameLabel = 'kubernetes.io/service-name'

const gvrOf: Readonly<Record<Part, GroupVersionResource>> = {
  export: serviceExports,
  import: serviceImports,
  service: services,
}

/** Makes ServiceImports, and Services with names of the cluster set, of ServiceExports. */
export function serviceExportsController({ clock = systemClock }: { readonly clock?: Clock } = {}): OperatorController {
  return loopWithMembers('service-exports', ({ context }) => {
    const { tenantInformers } = context
    const exports = tenantInformers.of<KubeObject>(serviceExports)
    const imports = tenantInformers.of<KubeObject>(serviceImports)
    const ofServices = tenantInformers.of<KubeObject>(services)
    const ofSlices = tenantInformers.of<KubeObject>(slices)
    const byNamespace = tenantInformers.byNamespace(slices)
    const seenOf = (key: string): Seen => {
      const { cluster = '', namespace = '', name } = parseKey(key)
      return {
        export: exports.store.get(key),
        import: imports.store.get(key),
        service: ofServices.store.get(key),
        derived: ofServices.store.get(keyFor({ cluster, namespace, name: clusterSetServiceName(name) })),
        slices: [...byNamespace.of(`${cluster}|${namespace}`)].filter(
          ({ metadata }) => metadata.labels?.[serviceNameLabel] === name,
        ),
      }
    }
    return {
      workers: 2,
      informers: [exports, imports, ofServices, ofSlices],
      follow: (add) => [
        ...[exports, imports].map((informer) => informer.onChange(({ key }) => add(key))),
        ofServices.onChange(({ key, before, after }) => {
          if (exports.store.get(key) !== undefined) add(key)
          const exported = exportedNameOf(after ?? before ?? { metadata: {} })
          const { cluster = '', namespace = '' } = parseKey(key)
          if (exported !== undefined) add(keyFor({ cluster, namespace, name: exported }))
        }),
        ofSlices.onChange(({ key, before, after }) => {
          const { cluster = '', namespace = '' } = parseKey(key)
          const name = (after ?? before)?.metadata.labels?.[serviceNameLabel]
          const of = name === undefined ? undefined : keyFor({ cluster, namespace, name })
          if (of !== undefined && exports.store.get(of) !== undefined) add(of)
        }),
      ],
      reconcile: (key, signal) => reconcileExport(key, seenOf(key), { context, now: timestamp(clock.now()) }, signal),
    }
  })
}

type Seen = Parameters<typeof planExport>[1]

async function reconcileExport(
  key: string,
  seen: Seen,
  { context, now }: { readonly context: OperatorContext; readonly now: string },
  signal: AbortSignal,
): Promise<void> {
  const { cluster = '', namespace = '', name } = parseKey(key)
  const client = context.virtual(`/clusters/${cluster}`)
  const steps = planExport(name, seen, now)
  try {
    if (steps.some((step) => step.do === 'delete')) await confirmWithdrawn(client, { namespace, name }, seen, signal)
    for (const step of steps) await apply(step, namespace, client, signal)
  } catch (error) {
    // A refusal, such as a full quota: the tenant is told, and the export is tried again.
    if (seen.export !== undefined && isRefusal(error))
      for (const step of planRefusal(seen.export, error.message, now)) await apply(step, namespace, client, signal)
    throw error
  }
}

function isRefusal(error: unknown): error is Error {
  return isStatusError(error) && error.code < 500 && ![404, 409, 429].includes(error.code)
}

/**
 * Rejects with ServiceUnavailable if only a list lacked the export or its Service: clients would lose a name that they
 * use.
 */
async function confirmWithdrawn(
  client: KubeClient,
  ref: { readonly namespace: string; readonly name: string },
  seen: Pick<Seen, 'export' | 'service'>,
  signal: AbortSignal,
): Promise<void> {
  const lacking: GroupVersionResource[] = []
  if (seen.export === undefined) lacking.push(serviceExports)
  else if (seen.service === undefined) lacking.push(services)
  for (const gvr of lacking) {
    const found = await client.tryGet<KubeObject>(gvr, ref, { signal })
    if (found !== undefined && found.metadata.deletionTimestamp === undefined)
      throw serviceUnavailable(
        `${groupResourceText(gvr)} "${ref.name}" is there, but was not in the list of all logical clusters`,
      )
  }
}

async function apply(step: Step, namespace: string, client: KubeClient, signal: AbortSignal): Promise<void> {
  const gvr = gvrOf[step.part]
  switch (step.do) {
    case 'create':
      // AlreadyExists: our list lags behind, and what it lacks causes the next reconcile.
      await client.create(gvr, step.object, { signal }).catch(tolerate('AlreadyExists'))
      return
    case 'update':
      await client.update(gvr, step.object, { signal })
      return
    case 'updateStatus':
      await client.update(gvr, step.object, { subresource: 'status', signal }).catch(tolerate('NotFound'))
      return
    case 'delete':
      await client
        .delete(gvr, { namespace, name: step.name }, { ...(step.uid && { uid: step.uid }), signal })
        .catch(tolerate('NotFound', 'Conflict'))
  }
}
