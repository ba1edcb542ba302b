// Claims of generic ephemeral volumes. A member makes them with the labels in the pod's template, which has none of ours:
// with one more label, every workload with such a volume would roll out. So a claim gets the label, by which caches
// select, when its pod is seen; from then on it is shown like any other object that a member made.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { managedLabel } from '#crds/index.ts'
import { controllerOf } from '#syncer/context/owners.ts'
import { gvrs, type CachedObject } from '#syncer/context/resources.ts'
import type { Reconcile } from '#syncer/context/scope.ts'

interface Spec {
  readonly nodeName?: string
  readonly volumes?: readonly { readonly name: string; readonly ephemeral?: object }[]
}

/** How long a pod without a node waits for its claims, which are made just after it, until they are looked for again. */
const againMs = 5000

/** Labels the claims of the member's pod. Pods without ephemeral volumes cost nothing. */
export async function labelEphemeralClaims(reconcile: Reconcile, live: CachedObject): Promise<void> {
  const { volumes = [], nodeName } = (live['spec'] ?? {}) as Spec
  const names = volumes.flatMap(({ name, ephemeral }) => (ephemeral === undefined ? [] : [`${reconcile.name}-${name}`]))
  const unlabelled = names.filter((name) => reconcile.live('persistentvolumeclaims', name) === undefined)
  if (unlabelled.length === 0 || live.metadata.deletionTimestamp !== undefined) return
  const found = await Promise.all(unlabelled.map((name) => labelClaim(reconcile, live, name)))
  if (found.includes(false) && nodeName === undefined) {
    const { context, kind, cluster, namespace, name } = reconcile
    context.enqueueAfter({ kind, cluster, namespace, name }, againMs)
  }
}

/** False if the member has not made the claim yet. A claim of the name that is not the pod's is left alone. */
async function labelClaim(
  { context: { downstream }, memberNamespace: namespace = '', signal }: Reconcile,
  { metadata: { uid } }: CachedObject,
  name: string,
): Promise<boolean> {
  const gvr = gvrs.persistentvolumeclaims
  const claim = await downstream.tryGet<KubeObject>(gvr, { namespace, name }, { signal })
  if (claim === undefined) return false
  const isLabelled = claim.metadata.labels?.[managedLabel] !== undefined
  if (isLabelled || controllerOf(claim)?.uid !== uid) return true
  const metadata = { uid: claim.metadata.uid, labels: { [managedLabel]: 'true' } }
  await downstream.patch(gvr, { namespace, name }, 'merge', { metadata }, { signal })
  return true
}
