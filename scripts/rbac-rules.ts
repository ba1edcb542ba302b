// The permissions of our processes in a host. Each verb is listed separately, and only those in use.
import type { KubeObject } from '#apimachinery/meta/index.ts'

interface PolicyRule {
  apiGroups: string[]
  resources: string[]
  resourceNames?: string[]
  verbs: string[]
}

/** The namespace of our processes and their Secrets. */
const systemNamespace = 'kcp-system'

const read = ['get', 'list', 'watch']

/** To apply our CustomResourceDefinitions and wait for them. Others may be created and read, but not changed. */
const installCrds: PolicyRule[] = [
  { apiGroups: ['apiextensions.k8s.io'], resources: ['customresourcedefinitions'], verbs: ['create', ...read] },
  {
    apiGroups: ['apiextensions.k8s.io'],
    resources: ['customresourcedefinitions'],
    resourceNames: [
      'logicalclusters.kcp.dev',
      'memberclusters.kcp.dev',
      'placements.kcp.dev',
      'adoptions.kcp.dev',
      'volumemoves.kcp.dev',
      'snapshotstores.kcp.dev',
      'logicalclustersnapshots.kcp.dev',
      'snapshotschedules.kcp.dev',
      'records.storage.kcp.dev',
    ],
    verbs: ['patch', 'update'],
  },
]

const leaderElection: PolicyRule = {
  apiGroups: ['coordination.k8s.io'],
  resources: ['leases'],
  verbs: ['create', 'update', ...read],
}

const operator: PolicyRule[] = [
  {
    apiGroups: ['kcp.dev'],
    resources: ['logicalclusters', 'memberclusters', 'placements', 'adoptions'],
    verbs: [...read, 'patch', 'update'],
  },
  // One for each claim that moves to another member.
  { apiGroups: ['kcp.dev'], resources: ['volumemoves'], verbs: [...read, 'create', 'delete', 'patch'] },
  { apiGroups: ['kcp.dev'], resources: ['snapshotstores', 'snapshotschedules'], verbs: read },
  // Made by schedules; deleted when their time is over.
  { apiGroups: ['kcp.dev'], resources: ['logicalclustersnapshots'], verbs: [...read, 'create', 'delete', 'patch'] },
  {
    apiGroups: ['kcp.dev'],
    resources: ['snapshotstores/status', 'logicalclustersnapshots/status', 'snapshotschedules/status'],
    verbs: ['patch'],
  },
  {
    apiGroups: ['kcp.dev'],
    resources: [
      'logicalclusters/status',
      'memberclusters/status',
      'placements/status',
      'adoptions/status',
      'volumemoves/status',
    ],
    verbs: ['patch', 'update'],
  },
  {
    apiGroups: ['kcp.dev'],
    resources: ['logicalclusters/finalizers', 'memberclusters/finalizers', 'logicalclustersnapshots/finalizers'],
    verbs: ['update'],
  },
  { apiGroups: ['', 'events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] },
  { apiGroups: [''], resources: ['namespaces'], resourceNames: [systemNamespace], verbs: ['get'] },
  ...installCrds,
]

/** Applied by name: RBAC asks for `create` too where an apply makes the object. */
const registerApiService: PolicyRule = {
  apiGroups: ['apiregistration.k8s.io'],
  resources: ['apiservices'],
  resourceNames: ['v1alpha1.virtual.kcp.dev'],
  verbs: ['create', 'patch'],
}

/**
 * The chart makes these Secrets without content. Our processes create none: whoever may create a Secret can make one
 * with a token of any ServiceAccount of its namespace.
 */
const ownSecrets = ['kcp-keys', 'kcp-serving-certificates', 'kcp-replica-authority', 'kcp-metrics-client']

/** The ConfigMap in which the server tells other processes the address of its direct listener. */
const publishAddress: PolicyRule = {
  apiGroups: [''],
  resources: ['configmaps'],
  resourceNames: ['kcp-apiserver'],
  verbs: ['create', 'patch', ...read],
}

/** The ConfigMap in which the console records the sign-in links that were used and the sessions that have ended. */
const consoleRecord: PolicyRule = {
  apiGroups: [''],
  resources: ['configmaps'],
  resourceNames: ['kcp-console'],
  verbs: ['create', 'patch', 'update', ...read],
}

/**
 * The ConfigMaps with rows of usage, whose names tell the hour and the writer. RBAC knows no prefixes, so this is a right
 * to all ConfigMaps of our namespace; none of them holds a secret or gives a right.
 */
const usageRows: PolicyRule = {
  apiGroups: [''],
  resources: ['configmaps'],
  verbs: ['create', 'delete', 'get', 'list', 'patch'],
}

const apiserver: PolicyRule[] = [
  { apiGroups: ['kcp.dev'], resources: ['logicalclusters', 'memberclusters', 'placements'], verbs: read },
  // At its start the API server waits until the host serves all kinds of ours.
  {
    apiGroups: ['kcp.dev'],
    resources: ['adoptions', 'volumemoves', 'snapshotstores', 'logicalclustersnapshots', 'snapshotschedules'],
    verbs: ['list'],
  },
  // status.agent: certificates of the agents of members in pull mode.
  { apiGroups: ['kcp.dev'], resources: ['memberclusters/status'], verbs: ['patch'] },
  // Condition AuthenticationValid, and status.usage.
  { apiGroups: ['kcp.dev'], resources: ['logicalclusters/status'], verbs: ['patch'] },
  // Tenants create children of their logical clusters.
  { apiGroups: ['kcp.dev'], resources: ['logicalclusters'], verbs: ['create', 'delete', 'update'] },
  {
    apiGroups: ['storage.kcp.dev'],
    resources: ['records'],
    verbs: ['create', 'delete', 'deletecollection', 'patch', 'update', ...read],
  },
  { apiGroups: [''], resources: ['namespaces'], verbs: ['create', ...read] },
  registerApiService,
  { apiGroups: ['authentication.k8s.io'], resources: ['tokenreviews'], verbs: ['create'] },
  { apiGroups: ['authorization.k8s.io'], resources: ['subjectaccessreviews'], verbs: ['create'] },
  ...installCrds,
]

/** The roles of one process: cluster-wide, and in its own namespace. */
function rolesOf(name: string, everywhere: PolicyRule[], here: PolicyRule[]): KubeObject[] {
  const apiVersion = 'rbac.authorization.k8s.io/v1'
  return [
    { apiVersion, kind: 'ClusterRole', metadata: { name }, rules: everywhere },
    { apiVersion, kind: 'Role', metadata: { name, namespace: systemNamespace }, rules: here },
  ]
}

/** Files of config/rbac by name. */
export const rbacManifests: Readonly<Record<string, KubeObject[]>> = {
  // Kubeconfigs of members and credentials of SnapshotStores are Secrets in our namespace, of any names: admins make
  // them.
  'operator.yaml': rolesOf('kcp-operator', operator, [
    leaderElection,
    // The operator renews the tokens in these Secrets, and deletes the Secrets of members that leave.
    { apiGroups: [''], resources: ['secrets'], verbs: ['get', 'patch', 'delete'] },
    { ...publishAddress, verbs: read },
    usageRows,
  ]),
  // Secrets of LogicalCluster.spec.kubeconfigs, in any namespace that a spec names. Whoever has this ClusterRole in all
  // namespaces can read every Secret whose name they know, and make a token of any ServiceAccount. Where that is too
  // much, bind the ClusterRole in single namespaces.
  'kubeconfig-secrets.yaml': [
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'kcp-kubeconfig-secrets' },
      rules: [{ apiGroups: [''], resources: ['secrets'], verbs: ['create', 'get', 'patch', 'delete'] }],
    },
    // Where the ClusterRole above is bound in all namespaces, this one is bound too, so that the operator sees at once
    // that one of these Secrets was changed or deleted.
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'kcp-kubeconfig-secrets-watch' },
      rules: [{ apiGroups: [''], resources: ['secrets'], verbs: ['list', 'watch'] }],
    },
  ],
  // For `kcp operator --cluster-profiles`; bound only where that option is used. The host's garbage collector deletes
  // the ClusterProfiles.
  'cluster-profiles.yaml': [
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'Role',
      metadata: { name: 'kcp-cluster-profiles', namespace: systemNamespace },
      rules: [
        { apiGroups: ['multicluster.x-k8s.io'], resources: ['clusterprofiles'], verbs: ['create', 'patch', ...read] },
        { apiGroups: ['multicluster.x-k8s.io'], resources: ['clusterprofiles/status'], verbs: ['patch'] },
      ],
    },
  ],
  // `kcp diagnose`, which `helm test` runs; it reads and changes nothing.
  'diagnose.yaml': rolesOf(
    'kcp-diagnose',
    [
      { apiGroups: ['kcp.dev'], resources: ['logicalclusters', 'memberclusters', 'placements'], verbs: ['list'] },
      { ...registerApiService, verbs: ['get'] },
    ],
    [
      { ...publishAddress, verbs: ['get'] },
      { ...leaderElection, verbs: ['get', 'list'] },
    ],
  ),
  // Runs before an uninstallation removes the server.
  'unregister.yaml': [
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'kcp-unregister' },
      rules: [{ ...registerApiService, verbs: ['delete'] }],
    },
  ],
  // Keys and certificates of the installation, and kubeconfigs of members for connections to pods. The host's own role
  // grants reading the front proxy's authorities.
  'apiserver.yaml': [
    ...rolesOf('kcp-apiserver', apiserver, [
      // The Lease of a replica is deleted by that replica, or by another one once the Lease has expired.
      { ...leaderElection, verbs: [...leaderElection.verbs, 'delete'] },
      { apiGroups: [''], resources: ['secrets'], verbs: ['get'] },
      { apiGroups: [''], resources: ['secrets'], resourceNames: ownSecrets, verbs: ['update'] },
      publishAddress,
      consoleRecord,
      usageRows,
    ]),
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata: { name: 'kcp-apiserver-authentication-reader', namespace: 'kube-system' },
      roleRef: {
        apiGroup: 'rbac.authorization.k8s.io',
        kind: 'Role',
        name: 'extension-apiserver-authentication-reader',
      },
      subjects: [{ kind: 'ServiceAccount', name: 'kcp-apiserver', namespace: systemNamespace }],
    },
  ],
}
