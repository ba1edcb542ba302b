// The objects of the nameserver in a member.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { contentHash, memberParts, systemNamespace } from '#crds/index.ts'

export interface SyncerAddress {
  readonly host: string
  readonly port: number
}

export const nameserverName = memberParts.nameserver
export const defaultNameserverImage = 'registry.k8s.io/coredns/coredns:v1.12.4'

/** ConfigMap, Deployment and Service, in the order in which they are applied. */
export function nameserverObjects({ corefile, image }: { corefile: string; image: string }): KubeObject[] {
  const labels = { 'app.kubernetes.io/name': nameserverName, 'app.kubernetes.io/part-of': 'kcp' }
  const selector = { 'app.kubernetes.io/name': nameserverName }
  const metadata = { name: nameserverName, namespace: systemNamespace, labels }
  const ports = [
    { name: 'dns', port: 53, targetPort: 53, protocol: 'UDP' },
    { name: 'dns-tcp', port: 53, targetPort: 53, protocol: 'TCP' },
  ]
  const container = {
    name: 'coredns',
    image,
    args: ['-conf', '/etc/coredns/Corefile'],
    // Named as those of kube-dns, because NetworkPolicies may name them.
    ports: [
      { name: 'dns', containerPort: 53, protocol: 'UDP' },
      { name: 'dns-tcp', containerPort: 53, protocol: 'TCP' },
    ],
    resources: { requests: { cpu: '20m', memory: '40Mi' }, limits: { memory: '256Mi' } },
    readinessProbe: { httpGet: { path: '/ready', port: 8181, scheme: 'HTTP' }, periodSeconds: 2 },
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { add: ['NET_BIND_SERVICE'], drop: ['ALL'] },
    },
    volumeMounts: [{ name: 'config', mountPath: '/etc/coredns', readOnly: true }],
  }
  const pod = {
    serviceAccountName: nameserverName,
    // It forwards names that it does not know to the member's DNS.
    dnsPolicy: 'ClusterFirst',
    containers: [container],
    volumes: [{ name: 'config', configMap: { name: nameserverName } }],
  }
  const template = { metadata: { labels, annotations: { 'kcp.dev/corefile': contentHash(corefile) } }, spec: pod }
  return [
    { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { Corefile: corefile } },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata,
      spec: { replicas: 1, selector: { matchLabels: selector }, template },
    },
    { apiVersion: 'v1', kind: 'Service', metadata, spec: { selector, ports } },
  ]
}
