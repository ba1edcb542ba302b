// The objects that joining creates in a member: an identity for the syncer with only the rights it needs, and one for
// the nameserver. The admin who joins creates them, because nobody can grant rights they do not have.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import {
  definitionName,
  installationAnnotation,
  managedLabel,
  memberParts,
  systemNamespace,
  type ExportedApi,
} from '#crds/index.ts'

const { syncerAccount, nameserver: nameserverAccount, gateway: gatewayAccount } = memberParts

const read = ['get', 'list', 'watch']
/** Server-side apply needs create and patch. */
const write = ['create', 'patch', 'delete']

/**
 * Rules of the syncer, without wildcards. It reads Secrets to compare them with the copies it should have.
 * member-policy.ts confines what it writes to namespaces of logical clusters.
 */
export const syncerRules = [
  {
    apiGroups: [''],
    resources: ['namespaces', 'configmaps', 'secrets', 'services', 'serviceaccounts', 'persistentvolumeclaims'],
    verbs: [...read, ...write],
  },
  { apiGroups: [''], resources: ['replicationcontrollers', 'limitranges'], verbs: [...read, ...write] },
  {
    apiGroups: ['apps'],
    resources: ['deployments', 'statefulsets', 'daemonsets', 'replicasets'],
    verbs: [...read, ...write],
  },
  // Patch: an adoption gives revisions our label.
  { apiGroups: ['apps'], resources: ['controllerrevisions'], verbs: [...read, 'patch', 'delete'] },
  { apiGroups: ['batch'], resources: ['jobs', 'cronjobs'], verbs: [...read, ...write] },
  // A CronJob goes on with the schedule it had in another member.
  { apiGroups: ['batch'], resources: ['cronjobs/status'], verbs: ['patch'] },
  { apiGroups: ['networking.k8s.io'], resources: ['ingresses', 'networkpolicies'], verbs: [...read, ...write] },
  { apiGroups: ['autoscaling'], resources: ['horizontalpodautoscalers'], verbs: [...read, ...write] },
  { apiGroups: ['policy'], resources: ['poddisruptionbudgets'], verbs: [...read, ...write] },
  { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: [...read, ...write] },
  // EndpointSlices with addresses outside of the member need this right.
  { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices/restricted'], verbs: ['create', 'update'] },
  { apiGroups: [''], resources: ['pods'], verbs: [...read, ...write] },
  // What tenants change of pods that run: see the PodWriter of the API server.
  { apiGroups: [''], resources: ['pods/eviction'], verbs: ['create'] },
  { apiGroups: [''], resources: ['pods/ephemeralcontainers', 'pods/resize', 'pods/status'], verbs: ['patch'] },
  { apiGroups: [''], resources: ['pods/log'], verbs: ['get'] },
  { apiGroups: [''], resources: ['pods/exec', 'pods/attach', 'pods/portforward'], verbs: ['get', 'create'] },
  { apiGroups: [''], resources: ['nodes', 'events'], verbs: read },
  // What pods use: `kubectl top` in logical clusters.
  { apiGroups: ['metrics.k8s.io'], resources: ['pods'], verbs: ['list'] },
  // Adoptions tell which of these stay in the member.
  { apiGroups: ['rbac.authorization.k8s.io'], resources: ['roles', 'rolebindings'], verbs: ['list'] },
  { apiGroups: [''], resources: ['resourcequotas'], verbs: ['list'] },
  // Volumes that move: see member-policy.ts, which confines the writes.
  { apiGroups: [''], resources: ['persistentvolumes'], verbs: ['get', 'list', 'create', 'patch', 'delete'] },
  {
    apiGroups: ['snapshot.storage.k8s.io'],
    resources: ['volumesnapshots', 'volumesnapshotcontents'],
    verbs: ['get', 'create', 'delete'],
  },
  // A content that belongs to a LogicalClusterSnapshot is kept without its VolumeSnapshot.
  { apiGroups: ['snapshot.storage.k8s.io'], resources: ['volumesnapshotcontents'], verbs: ['patch'] },
  { apiGroups: ['snapshot.storage.k8s.io'], resources: ['volumesnapshotclasses'], verbs: ['list'] },
  { apiGroups: ['storage.k8s.io'], resources: ['volumeattachments'], verbs: ['list'] },
  // The classes that tenants may name.
  { apiGroups: ['storage.k8s.io'], resources: ['storageclasses'], verbs: read },
  { apiGroups: ['networking.k8s.io'], resources: ['ingressclasses'], verbs: read },
  { apiGroups: ['node.k8s.io'], resources: ['runtimeclasses'], verbs: read },
  { apiGroups: ['scheduling.k8s.io'], resources: ['priorityclasses'], verbs: read },
  { apiGroups: ['authentication.k8s.io'], resources: ['tokenreviews'], verbs: ['create'] },
  // Everything else that joining created goes with its ClusterRole: see memberObjects.
  {
    apiGroups: ['rbac.authorization.k8s.io'],
    resources: ['clusterroles'],
    resourceNames: [syncerAccount],
    verbs: ['delete'],
  },
] as const

/** Rules of the nameserver: CoreDNS reads Services, and pods to know them by their address. */
export const nameserverRules = [
  { apiGroups: [''], resources: ['services', 'pods', 'namespaces'], verbs: ['list', 'watch'] },
  { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] },
] as const

/** Rules of the gateway: where Services lead, and whose pods have which addresses. */
export const gatewayRules = [
  { apiGroups: [''], resources: ['pods'], verbs: ['list', 'watch'] },
  { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] },
] as const

/** Rules for the APIs that the member exports: their definitions, and their objects. */
export function exportRules(apis: readonly Readonly<ExportedApi>[]): readonly object[] {
  if (apis.length === 0) return []
  return [
    {
      apiGroups: ['apiextensions.k8s.io'],
      resources: ['customresourcedefinitions'],
      resourceNames: apis.map(definitionName),
      // A watch that selects the name needs no more than these rights for the name.
      verbs: read,
    },
    ...apis.map(({ group, resource }) => ({ apiGroups: [group], resources: [resource], verbs: [...read, ...write] })),
  ]
}

/**
 * All objects, in the order in which they are applied. The namespace owns the ClusterRole of the syncer, which owns all
 * others: when the namespace is deleted, or that ClusterRole where the namespace must stay, the member deletes the
 * rest, for which the syncer itself has no right. `exported`: the APIs that the member exports. `installation`: whose
 * member it is, as in `installationAnnotation`. `more`: rules of the syncer besides its own.
 */
export function memberObjects(
  exported: readonly Readonly<ExportedApi>[] = [],
  installation?: string,
  more: readonly unknown[] = [],
): KubeObject[] {
  const labels = { 'app.kubernetes.io/part-of': 'kcp' }
  const role = (name: string, rules: readonly unknown[]): KubeObject[] => [
    { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name, labels }, rules },
    {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: {
        name,
        namespace: systemNamespace,
        labels,
        ...(installation !== undefined && { annotations: { [installationAnnotation]: installation } }),
      },
    },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name, labels },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
      subjects: [{ kind: 'ServiceAccount', name, namespace: systemNamespace }],
    },
  ]
  const rbac = 'rbac.authorization.k8s.io'
  const own = { name: gatewayAccount, namespace: systemNamespace, labels }
  const renewal = { name: `${syncerAccount}-token`, namespace: systemNamespace, labels }
  return [
    {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: systemNamespace, labels: { ...labels, [`${managedLabel}-system`]: 'true' } },
    },
    ...role(syncerAccount, [...syncerRules, ...exportRules(exported), ...more]),
    ...role(nameserverAccount, nameserverRules),
    ...role(gatewayAccount, gatewayRules),
    // The gateway reads its own identity, and the ConfigMaps about the other gateways.
    {
      apiVersion: `${rbac}/v1`,
      kind: 'Role',
      metadata: own,
      rules: [
        { apiGroups: [''], resources: ['secrets'], resourceNames: [gatewayAccount], verbs: read },
        { apiGroups: [''], resources: ['configmaps'], verbs: read },
      ],
    },
    {
      apiVersion: `${rbac}/v1`,
      kind: 'RoleBinding',
      metadata: own,
      roleRef: { apiGroup: rbac, kind: 'Role', name: own.name },
      subjects: [{ kind: 'ServiceAccount', name: gatewayAccount, namespace: systemNamespace }],
    },
    // The syncer renews its own token, and cannot request a token of another identity.
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
