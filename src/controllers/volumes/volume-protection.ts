// Lets claims and volumes go that nobody uses any more: what holds them is there to outlive their users, no longer.
import type { GroupVersionResource, KubeObject } from '../../apimachinery/meta/index.ts'
import { tolerate } from '../../apimachinery/status/index.ts'
import type { KubeClient } from '../../client/index.ts'
import type { Outcome } from '../../reconcile/index.ts'
import { followDeletedOf, type ObjectRef } from '../follow-deleted.ts'
import { persistentVolumeClaims, persistentVolumes, pods } from '../resources.ts'
import type { Loop, LoopContext } from '../start-controllers.ts'

interface Pod extends KubeObject {
  spec?: { volumes?: { name: string; persistentVolumeClaim?: { claimName?: string }; ephemeral?: object }[] }
  status?: { phase?: string }
}
interface Volume extends KubeObject {
  status?: { phase?: string }
}

/** How a resource is held, and whether an object of it is still in use. */
interface Protection {
  readonly gvr: GroupVersionResource
  readonly finalizer: string
  readonly isUsed: (client: KubeClient, object: KubeObject, signal: AbortSignal) => Promise<boolean>
}

/** Seconds between looks at a claim that a pod still uses. */
const usedRequeueSeconds = 5

const claims: Protection = {
  gvr: persistentVolumeClaims,
  finalizer: 'kubernetes.io/pvc-protection',
  isUsed: async (client, { metadata: { name = '', namespace = '' } }, signal) => {
    const { items } = await client.list<Pod>(pods, { namespace, signal })
    return items.some(
      (pod) =>
        pod.status?.phase !== 'Succeeded' &&
        pod.status?.phase !== 'Failed' &&
        (pod.spec?.volumes ?? []).some(
          (volume) =>
            volume.persistentVolumeClaim?.claimName === name ||
            (volume.ephemeral !== undefined && `${pod.metadata.name ?? ''}-${volume.name}` === name),
        ),
    )
  },
}

const volumes: Protection = {
  gvr: persistentVolumes,
  finalizer: 'kubernetes.io/pv-protection',
  isUsed: (_client, object) => Promise.resolve((object as Volume).status?.phase === 'Bound'),
}

/** Follows claims and volumes that are being deleted. */
export async function startVolumeProtection(context: LoopContext): Loop {
  const follow = (protection: Protection): Loop => {
    const { gvr } = protection
    return followDeletedOf(
      gvr,
      {
        name: `${gvr.resource}-protection`,
        finish: (client, ref, signal) => release(client, ref, protection, signal),
      },
      context,
    )
  }
  await Promise.all([follow(claims), follow(volumes)])
}

/** Takes the finalizer away from an object that is being deleted and not in use. */
async function release(
  client: KubeClient,
  ref: ObjectRef,
  { gvr, finalizer, isUsed }: Protection,
  signal: AbortSignal,
): Promise<Outcome | undefined> {
  const object = await client.tryGet<KubeObject>(gvr, ref, { signal })
  const { deletionTimestamp, finalizers = [] } = object?.metadata ?? {}
  if (object === undefined || deletionTimestamp === undefined || !finalizers.includes(finalizer)) return undefined
  if (await isUsed(client, object, signal)) return { requeueAfterSeconds: usedRequeueSeconds }
  const rest = finalizers.filter((other) => other !== finalizer)
  await client
    .update(gvr, { ...object, metadata: { ...object.metadata, finalizers: rest } }, { signal })
    .catch(tolerate('NotFound'))
  return undefined
}
