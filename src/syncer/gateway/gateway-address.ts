// The address at which other members reach the gateway of a member.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { DeepReadonly, KubeClient } from '#client/index.ts'
import { gatewayPort, isConditionTrue } from '#crds/index.ts'

interface ServiceParts {
  readonly spec?: { readonly ports?: readonly { readonly nodePort?: number }[] }
  readonly status?: {
    readonly loadBalancer?: { readonly ingress?: readonly { readonly ip?: string; readonly hostname?: string }[] }
  }
}

interface NodeParts {
  readonly status?: { readonly addresses?: readonly { readonly type: string; readonly address: string }[] }
}

const nodes = { group: '', version: 'v1', resource: 'nodes' } as const
/** Nodes that are looked at for one that is ready. */
const maxNodes = 50

/**
 * `HOST:PORT` of a load balancer, else of the node port on a node that is ready; `before` while it is still one of
 * them. Undefined: there is none yet.
 */
export async function findGatewayAddress(
  service: DeepReadonly<KubeObject>,
  {
    before,
    member,
    signal,
  }: { readonly before: string | undefined; readonly member: KubeClient; readonly signal: AbortSignal },
): Promise<string | undefined> {
  const { spec, status } = service as ServiceParts
  const [ingress] = status?.loadBalancer?.ingress ?? []
  const balanced = ingress?.hostname ?? ingress?.ip
  if (balanced !== undefined) return join(balanced, gatewayPort)
  const nodePort = spec?.ports?.[0]?.nodePort
  if (nodePort === undefined) return undefined
  const { items } = await member.list<KubeObject>(nodes, { limit: maxNodes, signal })
  const found = items
    .filter((node) => isConditionTrue(node as Parameters<typeof isConditionTrue>[0], 'Ready'))
    .flatMap((node) => addressOf(node) ?? [])
    .map((address) => join(address, nodePort))
    .sort()
  return before !== undefined && found.includes(before) ? before : found[0]
}

function addressOf(node: KubeObject): string | undefined {
  const { addresses = [] } = (node as NodeParts).status ?? {}
  const of = (wanted: string): string | undefined => addresses.find(({ type }) => type === wanted)?.address
  return of('ExternalIP') ?? of('InternalIP')
}

function join(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}
