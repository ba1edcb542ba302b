// Which addresses a run uses. One number, its slot, decides them all, so runs with different slots never collide.

/** Slots there are: one /16 of 10.64.0.0 - 10.191.255.255 each. */
export const slotCount = 128
/** Clusters a run can hold. */
export const maxClusters = 64

export interface ClusterAddresses {
  /** Of the node on the bridge. */
  node: string
  podCidr: string
  /** Services; never routed outside the node's own network namespace. */
  serviceCidr: string
  /** First of the Service range: `kubernetes.default.svc`. */
  apiService: string
  /** `kube-dns.kube-system.svc`. */
  dnsService: string
  /** Own loopback address of the control plane's unauthenticated parts (etcd). */
  loopback: string
}

/** The /16 of a slot. */
export const slotCidr = (slot: number): string => `10.${64 + slot}.0.0/16`
/** The machine's own address on the run's bridge: what pods reach our servers at. */
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
