// What joining makes in a member: an identity for the syncer with no more rights than syncing needs, and one for the
// nameserver. Made by whoever joins, since no identity may give away rights it does not have.
import type { KubeObject } from '../../apimachinery/meta/index.ts'
import { managedLabel, memberParts, systemNamespace } from '../../crds/index.ts'

const { syncerAccount } = memberParts
export const nameserverAccount = memberParts.nameserver
/** Holds the syncer's token: of type kubernetes.io/service-account-token, so it does not expire; deleting it revokes it. */
export const { tokenSecret } = memberParts

const read = ['get', 'list', 'watch']
const write = ['create', 'update', 'patch', 'delete']

/** Rules of the syncer. Secrets are read because their copies are compared; wildcards are nowhere. */
export const syncerRules = [
  {
    apiGroups: [''],
    resources: ['namespaces', 'configmaps', 'secrets', 'services', 'serviceaccounts'],
    verbs: [...read, ...write],
  },
  { apiGroups: ['apps'], resources: ['deployments'], verbs: [...read, ...write] },
  { apiGroups: ['apps'], resources: ['replicasets'], verbs: read },
  { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: [...read, ...write] },
  // An EndpointSlice with addresses of other members' pods counts as restricted.
  { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices/restricted'], verbs: ['create', 'update'] },
  { apiGroups: [''], resources: ['pods'], verbs: [...read, 'patch', 'delete'] },
  { apiGroups: [''], resources: ['pods/log'], verbs: ['get'] },
  { apiGroups: [''], resources: ['pods/exec', 'pods/attach', 'pods/portforward'], verbs: ['get', 'create'] },
  { apiGroups: [''], resources: ['nodes'], verbs: read },
  { apiGroups: ['authentication.k8s.io'], resources: ['tokenreviews'], verbs: ['create'] },
] as const

/** Rules of the nameserver: what CoreDNS needs to answer for Services and to know pods by their address. */
export const nameserverRules = [
  { apiGroups: [''], resources: ['services', 'pods', 'namespaces'], verbs: ['list', 'watch'] },
  { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] },
] as const

/** Everything, in the order in which it is applied. */
export function memberObjects(): KubeObject[] {
  const labels = { 'app.kubernetes.io/part-of': 'kcp' }
  const role = (name: string, rules: readonly unknown[]): KubeObject[] => [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace: systemNamespace, labels } },
    { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name, labels }, rules },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name, labels },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
      subjects: [{ kind: 'ServiceAccount', name, namespace: systemNamespace }],
    },
  ]
  return [
    {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: systemNamespace, labels: { ...labels, [`${managedLabel}-system`]: 'true' } },
    },
    ...role(syncerAccount, syncerRules),
    ...role(nameserverAccount, nameserverRules),
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: {
        name: tokenSecret,
        namespace: systemNamespace,
        labels,
        annotations: { 'kubernetes.io/service-account.name': syncerAccount },
      },
      type: 'kubernetes.io/service-account-token',
    },
  ]
}
