// The ClusterRole that metrics-server installs in a cluster, and the rules that `view`, `edit` and `admin` aggregate
// from it. It is in the base layer, so it takes no memory per logical cluster. If no member has metrics, it allows
// resources that are not served.
import { canonicalJson } from '#apimachinery/json/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'

const aggregateTo = 'rbac.authorization.k8s.io/aggregate-to-'

const metricsReader: KubeObject = {
  kind: 'ClusterRole',
  apiVersion: 'rbac.authorization.k8s.io/v1',
  metadata: {
    name: 'system:aggregated-metrics-reader',
    labels: { [`${aggregateTo}admin`]: 'true', [`${aggregateTo}edit`]: 'true', [`${aggregateTo}view`]: 'true' },
  },
  rules: [{ apiGroups: ['metrics.k8s.io'], resources: ['pods', 'nodes'], verbs: ['get', 'list', 'watch'] }],
}

interface Role extends KubeObject {
  readonly aggregationRule?: { readonly clusterRoleSelectors: readonly { readonly matchLabels: Labels }[] }
  readonly rules: readonly object[]
}
type Labels = Readonly<Record<string, string>>

/**
 * The objects with this ClusterRole added, and with `view`, `edit` and `admin` as the controller of aggregated
 * ClusterRoles would write them.
 */
export function withMetricsReader(objects: readonly KubeObject[]): KubeObject[] {
  const all = [...objects, metricsReader]
  const roles = new Map(all.filter(isRole).map((role) => [role.metadata.name ?? '', role]))
  // `edit` aggregates `view`, and `admin` aggregates `edit`, so this order matters.
  for (const name of ['view', 'edit', 'admin']) {
    const role = roles.get(name)
    if (role !== undefined) roles.set(name, { ...role, rules: aggregated(role, [...roles.values()]) })
  }
  return all.map((object) => (isRole(object) ? (roles.get(object.metadata.name ?? '') ?? object) : object))
}

function isRole(object: KubeObject): object is Role {
  return object.kind === 'ClusterRole'
}

function aggregated({ aggregationRule }: Role, roles: readonly Role[]): object[] {
  const rules = new Map<string, object>()
  const sorted = roles.toSorted((a, b) => ((a.metadata.name ?? '') < (b.metadata.name ?? '') ? -1 : 1))
  for (const { matchLabels } of aggregationRule?.clusterRoleSelectors ?? [])
    for (const { metadata, rules: own } of sorted)
      if (Object.entries(matchLabels).every(([label, value]) => metadata.labels?.[label] === value))
        for (const rule of own) rules.set(canonicalJson(rule), rules.get(canonicalJson(rule)) ?? rule)
  return [...rules.values()]
}
