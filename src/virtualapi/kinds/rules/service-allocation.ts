// Allocates cluster IPs and node ports of Services. Each logical cluster has its own range.
import { randomInt } from 'node:crypto'
import type { ClusterObjects, Entry } from '#store/watch-cache/index.ts'
import { decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { AllocationFor } from '#virtualapi/kinds/resources/allocation.ts'
import { portsOf, type Service } from './service-types.ts'

/** 10.96.0.0/12, the default of kubeadm. */
export const serviceRange = { base: (10 << 24) | (96 << 16), size: 1 << 20, text: '10.96.0.0/12' } as const
/** kube-apiserver's default range of node ports. */
export const nodePortRange = { first: 30000, last: 32767 } as const

/** The addresses of the Service `kubernetes` and of DNS. */
const reserved: ReadonlySet<string> = new Set(['10.96.0.1', '10.96.0.10'])
/** Random addresses start above this part of the range, which is left to addresses that users choose (KEP-3070). */
const staticPart = 256
/** The same for node ports (KEP-3668). */
const staticPorts = 86
const nodePorts = nodePortRange.last - nodePortRange.first + 1
const reservationMs = 60_000
const maxReservations = 4096
const maxTries = 64

/** The addresses and ports of one Service. */
interface Holding {
  readonly entry: Entry
  readonly values: readonly (string | number)[]
}

/**
 * The holders of addresses and ports. The allocator reads every Service once, and later only changed ones. A
 * value that was allocated but is not yet stored stays reserved for a minute, so that two creates at the same time get
 * different values.
 */
class Allocator {
  readonly #holdings = new Map<string, Holding>()
  readonly #holders = new Map<string | number, string>()
  readonly #reservations = new Map<string | number, { readonly until: number; readonly by: string }>()
  readonly #objects: ClusterObjects

  constructor(objects: ClusterObjects) {
    this.#objects = objects
  }

  /** True if no Service but `by` holds `value`. */
  isFree(value: string | number, by: string, now: number): boolean {
    const holder = this.#holders.get(value)
    if (holder !== undefined) return holder === by
    const reservation = this.#reservations.get(value)
    return reservation === undefined || reservation.until <= now || reservation.by === by
  }

  reserve(value: string | number, by: string, now: number): void {
    if (this.#reservations.size >= maxReservations)
      for (const [held, { until }] of this.#reservations)
        if (until <= now || this.#reservations.size >= maxReservations) this.#reservations.delete(held)
    this.#reservations.set(value, { until: now + reservationMs, by })
  }

  refresh(): void {
    const seen = new Set<string>()
    for (const entry of this.#objects.list({ resource: 'services' })) {
      const by = `${entry.key.namespace}/${entry.key.name}`
      seen.add(by)
      const holding = this.#holdings.get(by)
      if (holding?.entry === entry) continue
      if (holding !== undefined) this.#release(by, holding)
      const values = valuesOf(decodeObject(entry.bytes) as Service)
      this.#holdings.set(by, { entry, values })
      for (const value of values) this.#holders.set(value, by)
    }
    if (seen.size === this.#holdings.size) return
    for (const [by, holding] of this.#holdings)
      if (!seen.has(by)) {
        this.#release(by, holding)
        this.#holdings.delete(by)
      }
  }

  #release(by: string, { values }: Holding): void {
    for (const value of values) {
      if (this.#holders.get(value) === by) this.#holders.delete(value)
      this.#reservations.delete(value)
    }
  }
}

const allocators = new WeakMap<ClusterObjects, Allocator>()

/** The allocator of this thread. */
export const allocationFor: AllocationFor = (objects, { by, now, dryRun }) => {
  let allocator = allocators.get(objects)
  if (allocator === undefined) {
    allocator = new Allocator(objects)
    allocators.set(objects, allocator)
  }
  const held = allocator
  held.refresh()
  const take = <T extends string | number>(value: T): T => {
    if (!dryRun) held.reserve(value, by, now)
    return value
  }
  const search = <T extends string | number>(candidate: (offset: number) => T, size: number): T | undefined => {
    for (let attempt = 0; attempt < maxTries; attempt++) {
      const value = candidate(randomInt(size))
      if (held.isFree(value, by, now)) return take(value)
    }
    for (let offset = 0; offset < size; offset++) {
      const value = candidate(offset)
      if (held.isFree(value, by, now)) return take(value)
    }
    return undefined
  }
  return {
    nextIp: () =>
      search((offset) => ipText(serviceRange.base + staticPart + offset), serviceRange.size - staticPart - 1),
    nextPort: () =>
      search((offset) => nodePortRange.first + staticPorts + offset, nodePorts - staticPorts) ??
      search((offset) => nodePortRange.first + offset, staticPorts),
    takeIp(ip) {
      // As upstream, whose dry run has another message.
      if (!inServiceRange(ip))
        return dryRun
          ? `the provided IP (${ip}) is not in the valid range. The range of valid IPs is ${serviceRange.text}`
          : 'the provided network does not match the current range'
      if ((reserved.has(ip) && !isReservedFor(ip, by)) || !held.isFree(ip, by, now))
        return 'provided IP is already allocated'
      take(ip)
      return undefined
    },
    takePort(port) {
      if (port < nodePortRange.first || port > nodePortRange.last)
        return `provided port is not in the valid range. The range of valid ports is ${nodePortRange.first}-${nodePortRange.last}`
      if (!held.isFree(port, by, now)) return 'provided port is already allocated'
      take(port)
      return undefined
    },
  }
}

function isReservedFor(ip: string, by: string): boolean {
  return ip === '10.96.0.1' ? by === 'default/kubernetes' : by.startsWith('kube-system/')
}

function valuesOf(service: Service): (string | number)[] {
  const { clusterIPs, clusterIP, healthCheckNodePort } = service.spec
  const ips = clusterIPs ?? (clusterIP ? [clusterIP] : [])
  const ports = portsOf(service).map(({ nodePort }) => nodePort ?? 0)
  return [...ips.filter((ip) => ip !== 'None'), ...[...ports, healthCheckNodePort ?? 0].filter((port) => port !== 0)]
}

function ipText(address: number): string {
  return [24, 16, 8, 0].map((shift) => (address >>> shift) & 0xff).join('.')
}

/** True for an IPv4 address in the range, except the network and broadcast addresses. */
export function inServiceRange(ip: string): boolean {
  const parts = ip.split('.').map(Number)
  if (parts.length !== 4) return false
  const address = parts.reduce((sum, part) => sum * 256 + part, 0)
  return address > serviceRange.base && address < serviceRange.base + serviceRange.size - 1
}
