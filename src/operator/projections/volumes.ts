// The controller that shows the volumes of bound claims as PersistentVolumes of the logical cluster, for `kubectl get pv`. Nobody
// else reads them: the member binds, mounts and deletes volumes.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { tolerate } from '#apimachinery/status/index.ts'
import { clusterInKey, keyFor, ObjectIndex, parseKey } from '#client/index.ts'
import { memberClusters, type MemberCluster } from '#crds/index.ts'
import { createKeyQueue, runController } from '#reconcile/index.ts'
import type { OperatorContext, OperatorController } from '#operator/framework/operator-context.ts'
import { untilOne } from '#operator/framework/until-one.ts'
import { boundVolumeOf, planVolume, type Step } from './plan-volumes.ts'

const claimsGvr = { group: '', version: 'v1', resource: 'persistentvolumeclaims' } as const
const volumesGvr = { group: '', version: 'v1', resource: 'persistentvolumes' } as const

/** Shows volumes of members as objects of logical clusters. */
export function volumesController(): OperatorController {
  return { name: 'volumes', run }
}

async function run(
  context: OperatorContext,
  { signal, started }: Parameters<OperatorController['run']>[1],
): Promise<void> {
  const { informers, tenantInformers, log } = context
  const members = informers.of<MemberCluster>(memberClusters)
  started()
  await untilOne(members, signal)
  const claims = tenantInformers.of<KubeObject>(claimsGvr)
  const volumes = tenantInformers.of<KubeObject>(volumesGvr)
  using byVolume = new ObjectIndex(claims, (key, claim) => {
    const name = boundVolumeOf(claim)
    return name === undefined ? [] : [keyFor({ cluster: clusterInKey(key), name })]
  })
  await Promise.all([members, claims, volumes].map((one) => one.synced(signal)))
  using queue = createKeyQueue({ maxMs: 30_000, fairnessKey: clusterInKey })
  using stack = new DisposableStack()
  stack.defer(
    claims.onChange(({ key, before, after }) => {
      for (const name of new Set([boundVolumeOf(before), boundVolumeOf(after)]))
        if (name !== undefined) queue.add(keyFor({ cluster: clusterInKey(key), name }))
    }),
  )
  stack.defer(volumes.onChange(({ key }) => queue.add(key)))
  const reconcile = async (key: string, visit: AbortSignal): Promise<void> => {
    const { cluster = '', name } = parseKey(key)
    const steps = planVolume(name, {
      claims: [...byVolume.of(key)],
      volume: volumes.store.get(key),
      classesOf: (member) =>
        members.store.get(member)?.status?.classes?.find(({ kind }) => kind === 'StorageClass')?.items ?? [],
    })
    for (const step of steps) await apply(step, { cluster, name }, context, visit)
  }
  await runController({ name: 'volumes', queue, workers: 2, reconcile, log, signal })
}

async function apply(
  step: Step,
  { cluster, name }: { readonly cluster: string; readonly name: string },
  { virtual }: OperatorContext,
  signal: AbortSignal,
): Promise<void> {
  const client = virtual(`/clusters/${cluster}`)
  switch (step.do) {
    case 'apply':
      await client.patch(volumesGvr, { name }, 'apply', step.volume, {
        fieldManager: 'kcp-volumes',
        force: true,
        signal,
      })
      return
    case 'setPhase':
      await client
        .patch(volumesGvr, { name }, 'merge', { status: { phase: step.phase } }, { subresource: 'status', signal })
        .catch(tolerate('NotFound'))
      return
    case 'delete':
      await client
        .delete(volumesGvr, { name }, { ...(step.uid && { uid: step.uid }), signal })
        .catch(tolerate('NotFound', 'Conflict'))
  }
}
