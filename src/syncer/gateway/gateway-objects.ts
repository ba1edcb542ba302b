// The objects of the gateway in a member, and the objects that tell it about the gateways of other members.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import {
  contentHash,
  gatewayHealthPort,
  gatewayNamespacesName,
  gatewayPeerLabel,
  gatewayPort,
  managedLabel,
  memberAnnotation,
  memberParts,
  systemNamespace,
  type MemberGateway,
} from '#crds/index.ts'
import { programContainer, spreadOverNodes } from '#syncer/join/member-program.ts'

const name = memberParts.gateway
const selector = { 'app.kubernetes.io/name': name }
const labels = { ...selector, 'app.kubernetes.io/part-of': 'kcp' }
/** How long connections that are open may go on when a pod of the gateway ends. */
const graceSeconds = 30

/** Deployment and Service, in the order in which they are applied. */
export function gatewayObjects(image: string): KubeObject[] {
  // Its EndpointSlices get the labels of the Service, by which the syncer finds them.
  const metadata = { name, namespace: systemNamespace, labels: { ...labels, [managedLabel]: 'true' } }
  const container = programContainer({
    name: 'gateway',
    image,
    args: ['gateway', `--port=${gatewayPort}`, `--health-port=${gatewayHealthPort}`, `--grace-seconds=${graceSeconds}`],
    ports: [
      { name: 'gateway', containerPort: gatewayPort },
      { name: 'health', containerPort: gatewayHealthPort },
    ],
    healthPort: gatewayHealthPort,
    readySeconds: 2,
  })
  const pod = {
    serviceAccountName: name,
    terminationGracePeriodSeconds: graceSeconds + 20,
    affinity: spreadOverNodes(selector),
    containers: [container],
  }
  return [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata,
      spec: {
        type: 'LoadBalancer',
        ipFamilyPolicy: 'PreferDualStack',
        selector,
        ports: [{ name: 'gateway', port: gatewayPort, targetPort: gatewayPort, protocol: 'TCP' }],
      },
    },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name, namespace: systemNamespace, labels },
      spec: {
        replicas: 2,
        strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
        selector: { matchLabels: selector },
        template: { metadata: { labels }, spec: pod },
      },
    },
  ]
}

/** Another member with a gateway. */
export interface GatewayPeer extends DeepReadonly<MemberGateway> {
  readonly name: string
  /** Ids of the logical clusters with workloads there: their Services may be reached from there. */
  readonly clusterIds: readonly string[]
}

/** The object that tells the gateway about a peer. */
export function peerObject({ name: member, address = '', certificates = [], clusterIds }: GatewayPeer): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name: `${name}-${contentHash(member)}`,
      namespace: systemNamespace,
      labels: { ...labels, [gatewayPeerLabel]: 'true' },
      annotations: { [memberAnnotation]: member },
    },
    data: { address, certificates: certificates.join('\n'), clusters: clusterIds.toSorted().join('\n') },
  }
}

/** The object that tells the gateway about the adopted namespaces of its member: the usual name for each name there. */
export function namespacesObject(namespaces: Readonly<Record<string, string>>): KubeObject {
  const metadata = { name: gatewayNamespacesName, namespace: systemNamespace, labels }
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { ...namespaces } }
}
