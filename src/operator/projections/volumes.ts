// The controller that shows the volumes of bound claims as PersistentVolumes of the logical cluster, for `kubectl get
// pv`. Nobody else reads them: the member binds, mounts and deletes volumes.
import { canonicalJson } from '#apimachinery/json/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { tolerate } from '#apimachinery/status/index.ts'
import { clusterInKey, type DeepReadonly, keyFor, ObjectIndex, parseKey } from '#client/index.ts'
import { memberAnnotation, type MemberClass, volumeAnnotation } from '#crds/index.ts'
import type { OperatorContext, OperatorController } from '#operator/framework/operator-context.ts'
import { loopWithMembers } from '#operator/framework/loop.ts'

const claimsGvr = { group: '', version: 'v1', resource: 'persistentvolumeclaims' } as const
const volumesGvr = { group: '', version: 'v1', resource: 'persistentvolumes' } as const

/** Shows volumes of members as objects of logical clusters. */
export function volumesController(): OperatorController {
  return loopWithMembers('volumes', ({ context, members, stack }) => {
    const claims = context.tenantInformers.of<KubeObject>(claimsGvr)
    const volumes = context.tenantInformers.of<KubeObject>(volumesGvr)
    const keyOfVolume = (claimKey: string, name: string): string => keyFor({ cluster: clusterInKey(claimKey), name })
    const byVolume = stack.use(
      new ObjectIndex(claims, (key, claim) => {
        const name = boundVolumeOf(claim)
        return name === undefined ? [] : [keyOfVolume(key, name)]
      }),
    )
    return {
      workers: 2,
      informers: [members, claims, volumes],
      follow: (add) => [
        claims.onChange(({ key, before, after }) => {
          for (const name of new Set([boundVolumeOf(before), boundVolumeOf(after)]))
            if (name !== undefined) add(keyOfVolume(key, name))
        }),
        volumes.onChange(({ key }) => add(key)),
      ],
      reconcile: async (key, signal) => {
        const { cluster = '', name } = parseKey(key)
        const steps = planVolume(name, {
          claims: [...byVolume.of(key)],
          volume: volumes.store.get(key),
          classesOf: (member) =>
            members.store.get(member)?.status?.classes?.find(({ kind }) => kind === 'StorageClass')?.items ?? [],
        })
        for (const step of steps) await apply(step, { cluster, name }, context, signal)
      },
    }
  })
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

type CachedObject = DeepReadonly<KubeObject>

type Step =
  | { readonly do: 'apply'; readonly volume: KubeObject }
  | { readonly do: 'setPhase'; readonly phase: 'Bound' | 'Released' }
  /** `uid`: of the volume that was read. If another volume must take its place, the next reconcile creates it. */
  | { readonly do: 'delete'; readonly uid: string }

export interface Seen {
  /** The claims of the logical cluster that name this volume. */
  readonly claims: readonly CachedObject[]
  readonly volume: CachedObject | undefined
  /** The StorageClasses of a member. */
  readonly classesOf: (member: string) => readonly DeepReadonly<MemberClass>[]
}

interface Claim {
  readonly spec?: { readonly volumeName?: string; readonly storageClassName?: string; readonly volumeMode?: string }
  readonly status?: {
    readonly phase?: string
    readonly capacity?: Readonly<Record<string, string>>
    readonly accessModes?: readonly string[]
  }
}

/** The volume that a claim names and a member has bound; undefined while there is none. */
export function boundVolumeOf(claim: CachedObject | undefined): string | undefined {
  const { spec, status } = (claim ?? {}) as Claim
  const { annotations = {} } = claim?.metadata ?? {}
  const isInMember = (annotations[volumeAnnotation] ?? annotations[memberAnnotation]) !== undefined
  return isInMember && status?.phase === 'Bound' && spec?.volumeName ? spec.volumeName : undefined
}

/** The steps for the volume of this name. A volume that the tenant made is left alone. */
export function planVolume(name: string, { claims, volume, classesOf }: Seen): Step[] {
  const sorted = claims.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
  // Members choose names of volumes: a claim whose member chose a name that is taken must not take over that volume.
  const shownFor = referenceOf((volume?.['spec'] as { readonly claimRef?: unknown } | undefined)?.claimRef)
  const claim = sorted.find(({ metadata: { uid } }) => uid !== undefined && uid === shownFor.uid) ?? sorted[0]
  if (volume !== undefined && volume.metadata.annotations?.[memberAnnotation] === undefined) return []
  if (claim === undefined) return volume === undefined ? [] : removal(volume)
  const wanted = volumeFor(name, claim, classesOf)
  if (volume === undefined) return [{ do: 'apply', volume: wanted }, bound]
  const [is, should] = [volume, wanted].map((one) => (one as { spec?: Readonly<Record<string, unknown>> }).spec ?? {})
  if (!isSame(referenceOf(is?.['claimRef']), referenceOf(should?.['claimRef']))) return removal(volume)
  if (volume.metadata.deletionTimestamp !== undefined) return []
  const isCurrent = Object.entries(should ?? {}).every(([field, value]) => isSame(is?.[field], value))
  return [
    ...(isCurrent ? [] : [{ do: 'apply', volume: wanted } as const]),
    ...(phaseOf(volume) === 'Bound' ? [] : [bound]),
  ]
}

const bound: Step = { do: 'setPhase', phase: 'Bound' }

/** The steps that delete a volume. A bound volume is protected from deletion, so it is released first. */
function removal(volume: CachedObject): Step[] {
  const { uid = '', deletionTimestamp } = volume.metadata
  return [
    ...(phaseOf(volume) === 'Bound' ? [{ do: 'setPhase', phase: 'Released' } as const] : []),
    ...(deletionTimestamp === undefined ? [{ do: 'delete', uid } as const] : []),
  ]
}

function volumeFor(name: string, claim: CachedObject, classesOf: Seen['classesOf']): KubeObject {
  const { spec = {}, status = {} } = claim as Claim
  const { annotations = {}, namespace, name: claimName, uid } = claim.metadata
  const member = annotations[volumeAnnotation] ?? annotations[memberAnnotation] ?? ''
  const { storageClassName, volumeMode = 'Filesystem' } = spec
  const known = classesOf(member).find((one) => one.name === storageClassName)
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name, annotations: { [memberAnnotation]: member } },
    spec: {
      capacity: { ...status.capacity },
      accessModes: [...(status.accessModes ?? [])],
      persistentVolumeReclaimPolicy: known?.reclaimPolicy === 'Retain' || known === undefined ? 'Retain' : 'Delete',
      ...(storageClassName ? { storageClassName } : {}),
      volumeMode,
      claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name: claimName, uid },
      // Where the data is, only the member may know.
      csi: { driver: 'member.kcp.dev', volumeHandle: name },
    },
  }
}

function referenceOf(reference: unknown): { readonly uid: unknown; readonly [field: string]: unknown } {
  const { namespace, name, uid } = (reference ?? {}) as Readonly<Record<string, unknown>>
  return { namespace, name, uid }
}

function phaseOf(volume: CachedObject): string | undefined {
  return (volume as Claim).status?.phase
}

function keyOf({ metadata: { namespace = '', name = '' } }: CachedObject): string {
  return `${namespace}/${name}`
}

function isSame(one: unknown, other: unknown): boolean {
  return canonicalJson(one ?? null) === canonicalJson(other ?? null)
}
