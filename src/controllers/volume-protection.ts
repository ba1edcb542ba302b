// Removes the protection finalizers from claims and volumes that are being deleted and no longer used.
import type { GroupVersionResource, KubeObject } from '#apimachinery/meta/index.ts'
import { tolerate } from '#apimachinery/status/index.ts'
import type { KubeClient, ObjectRef } from '#client/index.ts'
import type { ReconcileResult } from '#reconcile/index.ts'
import { type ControllerContext, followDeletedOf } from './framework.ts'
import { persistentVolumeClaims, persistentVolumes, pods } from './resources.ts'

interface Pod extends KubeObject {
  spec?: { volumes?: { name: string; persistentVolumeClaim?: { claimName?: string }; ephemeral?: object }[] }
  status?: { phase?: string }
}
interface Volume extends KubeObject {
  status?: { phase?: string }
}

/** The finalizer that protects a resource, and how to tell that an object is in use. */
interface Protection {
  readonly gvr: GroupVersionResource
  readonly finalizer: string
  readonly isUsed: (client: KubeClient, object: KubeObject, signal: AbortSignal) => Promise<boolean>
}

/** Seconds between reconciles of a claim that a pod still uses. */
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

/** Reconciles claims and volumes that are being deleted, until the signal aborts. */
export async function startVolumeProtection(context: ControllerContext): Promise<void> {
  const follow = (protection: Protection): Promise<void> => {
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

/** Removes the finalizer from an object that is being deleted and not in use. */
async function release(
  client: KubeClient,
  ref: ObjectRef,
  { gvr, finalizer, isUsed }: Protection,
  signal: AbortSignal,
): Promise<ReconcileResult | undefined> {
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
