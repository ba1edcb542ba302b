// Tools that apply an object from somewhere else: with them, kcp and the tool would overwrite each other for ever.
import type { KubeObject } from '#apimachinery/meta/index.ts'

interface Applier {
  /** The words for the object of the tool; undefined: the tool does not apply this object. */
  readonly of: (marks: Readonly<Record<string, string>>) => string | undefined
  readonly hint: string
}

const named = (kind: string, prefix: string): Applier['of'] => {
  return (marks) => {
    const name = marks[`${prefix}/name`]
    return name === undefined ? undefined : `${kind} "${marks[`${prefix}/namespace`] ?? ''}/${name}" of Flux`
  }
}

const toLogicalCluster =
  'suspend it, point it at the logical cluster (docs/gitops.md), remove its labels from the objects, and adopt then'

const appliers: readonly Applier[] = [
  {
    of: (marks) => {
      const application = marks['argocd.argoproj.io/tracking-id'] ?? marks['argocd.argoproj.io/instance']
      return application === undefined ? undefined : `Application "${application.split(':')[0] ?? ''}" of Argo CD`
    },
    hint: 'turn off its automated sync, point its destination at the logical cluster (docs/gitops.md), remove the tracking id from the objects, and adopt then',
  },
  { of: named('Kustomization', 'kustomize.toolkit.fluxcd.io'), hint: toLogicalCluster },
  { of: named('HelmRelease', 'helm.toolkit.fluxcd.io'), hint: toLogicalCluster },
  {
    of: (marks) =>
      marks['fleet.cattle.io/bundle-id'] === undefined && marks['objectset.rio.cattle.io/hash'] === undefined
        ? undefined
        : 'a Bundle of Fleet',
    hint: 'point the GitRepo at another cluster, remove its labels from the objects, and adopt then',
  },
  {
    of: (marks) => (marks['karmada.io/managed'] === 'true' ? 'a Work of Karmada' : undefined),
    hint: 'let Karmada keep the resources when it withdraws (preserveResourcesOnDeletion), and adopt then',
  },
  {
    of: (marks) =>
      marks['work.open-cluster-management.io/appliedmanifestwork'] === undefined ? undefined : 'a ManifestWork of OCM',
    hint: 'delete the ManifestWork with propagation policy Orphan, and adopt then',
  },
]

/** Argo CD that knows its objects by their label `app.kubernetes.io/instance`, which Helm writes, too. */
const argoManagers: ReadonlySet<string> = new Set(['argocd-controller', 'argocd-application-controller'])

/** Who else applies the object, and what to do; undefined: nobody that is known. */
export function otherApplier({ metadata }: KubeObject): string | undefined {
  const marks = { ...metadata.labels, ...metadata.annotations }
  for (const { of, hint } of appliers) {
    const owner = of(marks)
    if (owner !== undefined) return `${owner} applies it: ${hint}`
  }
  const instance = metadata.labels?.['app.kubernetes.io/instance']
  for (const { manager = '' } of (metadata.managedFields ?? []) as readonly { manager?: string }[])
    if (instance !== undefined && argoManagers.has(manager))
      return `Application "${instance}" of Argo CD applies it (field manager "${manager}"): turn off its automated sync, point its destination at the logical cluster (docs/gitops.md), remove label app.kubernetes.io/instance, and adopt then`
  return undefined
}
