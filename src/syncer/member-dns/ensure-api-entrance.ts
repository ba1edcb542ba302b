// Where pods of a member in pull mode reach the API of their logical cluster: a Service of the agent there.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { serviceUnavailable } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'
import { agentApiPort, memberParts, syncerFieldManager, systemNamespace } from '#crds/index.ts'
import { gvrs } from '#syncer/context/resources.ts'
import type { SyncerAddress } from './nameserver-objects.ts'

export interface ApiEntrance {
  /** A name in our certificate, for the variables of containers. The nameserver resolves it. */
  readonly name: SyncerAddress
  /** The address that the name stands for. */
  readonly address: SyncerAddress
}

const port = 443

/** Applies the Service. Resolves with its address, which does not change. Rejects with the member's StatusError. */
export async function ensureApiEntrance(member: KubeClient, signal: AbortSignal): Promise<ApiEntrance> {
  const name = memberParts.agent
  const service: KubeObject = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: systemNamespace, labels: { 'app.kubernetes.io/part-of': 'kcp' } },
    spec: {
      selector: { 'app.kubernetes.io/name': name },
      ports: [{ name: 'api', port, targetPort: agentApiPort, protocol: 'TCP' }],
    },
  }
  const options = { fieldManager: syncerFieldManager, force: true, signal }
  const applied = await member.patch<KubeObject>(
    gvrs.services,
    { namespace: systemNamespace, name },
    'apply',
    service,
    options,
  )
  const { clusterIP = '' } = applied['spec'] as { clusterIP?: string }
  if (clusterIP === '') throw serviceUnavailable(`Service "${systemNamespace}/${name}" has no cluster IP in the member`)
  return { name: { host: 'kubernetes.default.svc', port }, address: { host: clusterIP, port } }
}
