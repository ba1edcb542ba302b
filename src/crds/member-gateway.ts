// The gateway of a member whose pod network is not connected to that of other members: it forwards connections to
// Services. The syncer and the program `kcp gateway` communicate only through objects in the member; this file is their
// contract.

/** How the other members reach the gateway of a member. */
export interface MemberGateway {
  /** `HOST:PORT`; absent: not known yet. */
  address?: string
  /** PEM: the certificates that it may present. */
  certificates?: string[]
}

/** The state of the gateway in a member, as the syncer of the member found it. */
export interface GatewayReport extends Readonly<MemberGateway> {
  /** Why the gateway does not work; absent if it works. */
  readonly problem?: { readonly reason: string; readonly message: string }
}

/** A DNS name, an IPv4 address or an IPv6 address in brackets, with a port. */
export const gatewayAddressPattern =
  '^([A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|\\[[0-9A-Fa-f:.]{2,45}\\]):[0-9]{1,5}$'

/** Label with value `true` on each ConfigMap that describes the gateway of another member. */
export const gatewayPeerLabel = 'kcp.dev/gateway-peer'
/**
 * ConfigMap in the namespace of kcp with the adopted namespaces of the member: the usual name, ID-NAME, for each name
 * there. Gateways know namespaces by their usual names.
 */
export const gatewayNamespacesName = 'kcp-gateway-namespaces'
/** Annotation of an EndpointSlice whose address is the gateway: JSON of GatewayTarget. */
export const gatewayTargetAnnotation = 'kcp.dev/gateway-target'
/** Annotation of such a slice: the number of ready endpoints behind it. */
export const readyEndpointsAnnotation = 'kcp.dev/ready-endpoints'

/** Where the gateway of the other member forwards a connection to. */
export interface GatewayTarget {
  /** The usual name of the namespace, ID-NAME; only a member from which it was adopted has it under another one. */
  readonly namespace: string
  readonly service: string
}

/**
 * Whether connections to the Service can use gateways: these forward TCP to the address of a Service, not to single
 * pods.
 */
export function crossesGateways(service: Readonly<Record<string, unknown>>): boolean {
  const {
    type,
    clusterIP,
    ports = [],
  } = (service['spec'] ?? {}) as {
    readonly type?: string
    readonly clusterIP?: string
    readonly ports?: readonly { readonly protocol?: string }[]
  }
  if (type === 'ExternalName' || clusterIP === 'None') return false
  return ports.some(({ protocol = 'TCP' }) => protocol === 'TCP')
}

/** Ports of a gateway at which pods reach Services of other members; they are below those of outgoing connections. */
export const gatewayListenerPorts = { first: 10_000, last: 29_999 } as const
/** How many of these ports may be for Services of one logical cluster. */
export const maxGatewayPortsPerCluster = 2000
/** The port at which gateways reach each other. */
export const gatewayPort = 8443
export const gatewayHealthPort = 8080
