// Decides which addresses a run uses. They all follow from one number, the slot, so runs with different slots never
// collide.

/** Number of slots: one /16 of 10.64.0.0 - 10.191.255.255 each. */
export const slotCount = 128
/** Maximum number of clusters in a run. */
export const maxClusters = 64

export interface ClusterAddresses {
  /** Address of the node on the bridge. */
  node: string
  podCidr: string
  /** Service addresses; never routed outside the node's own network namespace. */
  serviceCidr: string
  /** First address of the Service range: `kubernetes.default.svc`. */
  apiService: string
  /** `kube-dns.kube-system.svc`. */
  dnsService: string
  /** Loopback address of the control plane's unauthenticated parts (etcd), one per cluster. */
  loopback: string
}

/** The /16 of a slot. */
export const slotCidr = (slot: number): string => `10.${64 + slot}.0.0/16`
/** The machine's own address on the run's bridge: pods reach our servers there. */
export const bridgeAddress = (slot: number): string => `10.${64 + slot}.0.1`

/** The addresses of cluster number `index` of the run in `slot`. */
export function clusterAddresses(slot: number, index: number): ClusterAddresses {
  if (slot < 0 || slot >= slotCount) throw new Error(`there is no address slot ${slot}`)
  if (index < 0 || index >= maxClusters) throw new Error(`a run holds at most ${maxClusters} clusters`)
  const net = `10.${64 + slot}`
  return {
    node: `${net}.0.${10 + index}`,
    podCidr: `${net}.${64 + index}.0/24`,
    serviceCidr: `${net}.${128 + index}.0/24`,
    apiService: `${net}.${128 + index}.1`,
    dnsService: `${net}.${128 + index}.10`,
    loopback: `127.${64 + slot}.${index}.1`,
  }
}

/** Whether two IPv4 networks, in CIDR form, share an address. */
export function overlaps(a: string, b: string): boolean {
  const [x, y] = [parseCidr(a), parseCidr(b)]
  const bits = Math.min(x.bits, y.bits)
  const mask = bits === 0 ? 0 : (-1 << (32 - bits)) >>> 0
  return (x.address & mask) >>> 0 === (y.address & mask) >>> 0
}

function parseCidr(text: string): { address: number; bits: number } {
  const [address = '', bits = '32'] = text.split('/')
  return { address: address.split('.').reduce((sum, byte) => sum * 256 + Number(byte), 0), bits: Number(bits) }
}
