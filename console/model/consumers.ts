// The users who may use a cluster through its ClusterProfile, by the RBAC of the API with the profiles. Pure.

interface Rule {
  readonly apiGroups?: readonly string[]
  readonly resources?: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly verbs?: readonly string[]
}

export interface Role {
  readonly metadata: { readonly name: string }
  readonly rules?: readonly Rule[] | null
}

export interface Binding {
  readonly roleRef: { readonly kind: string; readonly name: string }
  readonly subjects?: readonly { readonly kind: string; readonly name: string; readonly namespace?: string }[] | null
}

/** What a profile stands for. */
export interface ProfileTarget {
  readonly resource: 'memberclusters' | 'logicalclusters'
  readonly name: string
}

const tenantSuffix = '.logicalcluster'
const group = 'virtual.kcp.dev'

/** The cluster of a profile by its name: names of members have no dots. */
export function targetOfProfile(profile: string): ProfileTarget {
  return profile.endsWith(tenantSuffix)
    ? { resource: 'logicalclusters', name: profile.slice(0, -tenantSuffix.length) }
    : { resource: 'memberclusters', name: profile }
}

/** The subjects with verb create on `RESOURCE/access` of this name, each once, in order. */
export function consumersOf(
  target: ProfileTarget,
  { roles, bindings }: { readonly roles: readonly Role[]; readonly bindings: readonly Binding[] },
): string[] {
  const granting = new Set(
    roles.filter(({ rules }) => rules?.some((rule) => grants(rule, target))).map(({ metadata }) => metadata.name),
  )
  const subjects = bindings
    .filter(({ roleRef }) => roleRef.kind === 'ClusterRole' && granting.has(roleRef.name))
    .flatMap((binding) => binding.subjects ?? [])
    .map(({ kind, name, namespace }) => `${kind} ${namespace === undefined ? name : `${namespace}/${name}`}`)
  return [...new Set(subjects)].sort()
}

function grants({ apiGroups, resources, resourceNames = [], verbs }: Rule, { resource, name }: ProfileTarget): boolean {
  const has = (list: readonly string[] | undefined, ...wanted: readonly string[]): boolean =>
    list?.some((one) => one === '*' || wanted.includes(one)) ?? false
  return (
    has(verbs, 'create') &&
    has(apiGroups, group) &&
    has(resources, `${resource}/access`, '*/access') &&
    (resourceNames.length === 0 || resourceNames.includes(name))
  )
}
