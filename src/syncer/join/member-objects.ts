// The objects that joining creates in a member: an identity for the syncer with only the rights it needs, and one for the
// nameserver. The admin who joins creates them, because nobody can grant rights they do not have.
import type { KubeObject } from '../../apimachinery/meta/index.ts'
import { managedLabel, memberParts, systemNamespace } from '../../crds/index.ts'

const { syncerAccount, nameserver: nameserverAccount } = memberParts

const read = ['get', 'list', 'watch']
/** Server-side apply needs create and patch. */
const write = ['create', 'patch', 'delete']

/**
 * Rules of the syncer, without wildcards. It reads Secrets to compare them with the copies it should have. member-policy.ts
 * confines what it writes to namespaces of logical clusters.
 */
export const syncerRules = [
  {
    apiGroups: [''],
    resources: ['namespaces', 'configmaps', 'secrets', 'services', 'serviceaccounts'],
    verbs: [...read, ...write],
  },
  { apiGroups: ['apps'], resources: ['deployments'], verbs: [...read, ...write] },
  { apiGroups: ['apps'], resources: ['replicasets'], verbs: read },
  { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: [...read, ...write] },
  // EndpointSlices with addresses outside of the member need this right.
  { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices/restricted'], verbs: ['create', 'update'] },
  { apiGroups: [''], resources: ['pods'], verbs: [...read, 'patch', 'delete'] },
  { apiGroups: [''], resources: ['pods/log'], verbs: ['get'] },
  { apiGroups: [''], resources: ['pods/exec', 'pods/attach', 'pods/portforward'], verbs: ['get', 'create'] },
  { apiGroups: [''], resources: ['nodes'], verbs: read },
  { apiGroups: ['authentication.k8s.io'], resources: ['tokenreviews'], verbs: ['create'] },
] as const

/** Rules of the nameserver: CoreDNS reads Services, and pods to know them by their address. */
export const nameserverRules = [
  { apiGroups: [''], resources: ['services', 'pods', 'namespaces'], verbs: ['list', 'watch'] },
  { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] },
] as const

/** All objects, in the order in which they are applied. */
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
  const rbac = 'rbac.authorization.k8s.io'
  const renewal = { name: `${syncerAccount}-token`, namespace: systemNamespace, labels }
  return [
    {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: systemNamespace, labels: { ...labels, [`${managedLabel}-system`]: 'true' } },
    },
    ...role(syncerAccount, syncerRules),
    ...role(nameserverAccount, nameserverRules),
    // It renews its own token, and can request none of another identity.
    {
      apiVersion: `${rbac}/v1`,
      kind: 'Role',
      metadata: renewal,
      rules: [
        {
          apiGroups: [''],
          resources: ['serviceaccounts/token'],
          resourceNames: [syncerAccount],
          verbs: ['create'],
        },
      ],
    },
    {
      apiVersion: `${rbac}/v1`,
      kind: 'RoleBinding',
      metadata: renewal,
      roleRef: { apiGroup: rbac, kind: 'Role', name: renewal.name },
      subjects: [{ kind: 'ServiceAccount', name: syncerAccount, namespace: systemNamespace }],
    },
  ]
}
