// The objects of the agent in a member in pull mode, besides the objects of every member: see member-objects.ts. The
// agent runs as the syncer's ServiceAccount, because the installation acts in the member through it.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { agentApiPort, memberParts, systemNamespace } from '#crds/index.ts'
import { programContainer, spreadOverNodes } from './member-program.ts'

export interface AgentJoin {
  /** `https://HOST:PORT` at which the member reaches the installation. */
  readonly server: string
  /** The authority of the installation's certificate, PEM. */
  readonly ca: string
  /** Name of the MemberCluster. */
  readonly member: string
  readonly token: string
  readonly tokenHash: string
  /** Image of kcp. */
  readonly image: string
  /** An HTTP proxy through which the member reaches the installation. */
  readonly httpProxy?: string
}

const { agent: name, agentJoin, syncerAccount } = memberParts
const selector = { 'app.kubernetes.io/name': name }
const labels = { ...selector, 'app.kubernetes.io/part-of': 'kcp' }
const healthPort = 8080
const rbac = 'rbac.authorization.k8s.io'

/**
 * Rules of the syncer's account where a printed manifest made its objects. None of them can own another there, because
 * nobody knows their uids, so the account deletes its own rights itself when the member leaves. It may not delete the
 * policy that confines it.
 */
export const agentRules = [
  {
    apiGroups: [rbac],
    resources: ['clusterroles', 'clusterrolebindings'],
    resourceNames: [memberParts.nameserver, memberParts.gateway],
    verbs: ['delete'],
  },
] as const

/** Role, Secret and Deployment of the agent, in the order in which they are applied. */
export function agentObjects(join: AgentJoin): KubeObject[] {
  const metadata = { name, namespace: systemNamespace, labels }
  return [
    {
      apiVersion: `${rbac}/v1`,
      kind: 'Role',
      metadata,
      // The agent tells why it waits.
      rules: [{ apiGroups: [''], resources: ['events'], verbs: ['create'] }],
    },
    {
      apiVersion: `${rbac}/v1`,
      kind: 'RoleBinding',
      metadata,
      roleRef: { apiGroup: rbac, kind: 'Role', name },
      subjects: [{ kind: 'ServiceAccount', name: syncerAccount, namespace: systemNamespace }],
    },
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: agentJoin, namespace: systemNamespace, labels },
      type: 'Opaque',
      stringData: { server: join.server, member: join.member, token: join.token, 'ca.crt': join.ca },
    },
    deployment(join),
  ]
}

function deployment({ image, httpProxy, tokenHash }: AgentJoin): KubeObject {
  const container = programContainer({
    name: 'agent',
    image,
    args: ['agent', `--namespace=${systemNamespace}`, `--api-port=${agentApiPort}`, `--health-port=${healthPort}`],
    ...(httpProxy !== undefined && { env: [{ name: 'HTTPS_PROXY', value: httpProxy }] }),
    ports: [
      { name: 'api', containerPort: agentApiPort },
      { name: 'health', containerPort: healthPort },
    ],
    healthPort,
    readySeconds: 5,
  })
  const pod = { serviceAccountName: syncerAccount, affinity: spreadOverNodes(selector), containers: [container] }
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace: systemNamespace, labels },
    spec: {
      // Both are connected at a time, so that the loss of a node does not cut the member off.
      replicas: 2,
      selector: { matchLabels: selector },
      // Another token makes new pods, which use it at once.
      template: { metadata: { labels, annotations: { 'kcp.dev/join': tokenHash.slice(0, 16) } }, spec: pod },
    },
  }
}
