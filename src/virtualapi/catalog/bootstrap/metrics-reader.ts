// The ClusterRole that metrics-server installs in a cluster, and what `view`, `edit` and `admin` aggregate from it. It
// is in the base layer, so no logical cluster pays for it; where no member has metrics it allows what is not served.
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

/** The objects with that ClusterRole, and with their aggregated ClusterRoles as the controller would leave them. */
export function withMetricsReader(objects: readonly KubeObject[]): KubeObject[] {
  const all = [...objects, metricsReader]
  const roles = new Map(all.filter(isRole).map((role) => [role.metadata.name ?? '', role]))
  // In the order in which they aggregate one another.
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
