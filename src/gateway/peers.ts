// The gateways of other members: their addresses, their certificates, and the logical clusters whose Services they may
// reach here.
import { X509Certificate } from 'node:crypto'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { memberAnnotation } from '#crds/index.ts'

export interface Peer {
  readonly member: string
  /** Address of the gateway; without it, the peer cannot be dialled. */
  readonly address?: { readonly host: string; readonly port: number }
  /** SHA-256 fingerprints of the certificates that it may present. */
  readonly fingerprints: ReadonlySet<string>
  /** Ids of the logical clusters whose Services the peer may reach. */
  readonly clusters: ReadonlySet<string>
}

/**
 * The peer that a ConfigMap describes; undefined if it names no member. Certificates that cannot be read are left out.
 */
export function peerOf(configMap: KubeObject): Peer | undefined {
  const member = configMap.metadata.annotations?.[memberAnnotation]
  if (member === undefined || member === '') return undefined
  const data = (configMap['data'] ?? {}) as Readonly<Record<string, string>>
  const address = tryAddress(data['address'] ?? '')
  return {
    member,
    ...(address && { address }),
    fingerprints: new Set(fingerprintsOf(data['certificates'] ?? '')),
    clusters: new Set((data['clusters'] ?? '').split(/\s+/).filter((id) => id !== '')),
  }
}

/** `HOST:PORT`, with brackets around an IPv6 address. */
export function tryAddress(text: string): { host: string; port: number } | undefined {
  const found = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text)
  const host = found?.[1] ?? found?.[2]
  const port = Number(found?.[3])
  return host === undefined || !(port >= 1 && port <= 65_535) ? undefined : { host, port }
}

function fingerprintsOf(pem: string): string[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? []
  return blocks.flatMap((block) => {
    try {
      return [new X509Certificate(block).fingerprint256]
    } catch {
      return []
    }
  })
}

/** All peers, by member and by certificate. */
export class Peers {
  /** Peers by the key of their ConfigMap. */
  readonly #byKey = new Map<string, Peer>()
  #byMember = new Map<string, Peer>()
  #byFingerprint = new Map<string, Peer>()

  set(key: string, peer: Peer | undefined): void {
    if (peer === undefined) this.#byKey.delete(key)
    else this.#byKey.set(key, peer)
    const peers = [...this.#byKey.values()]
    this.#byMember = new Map(peers.map((one) => [one.member, one]))
    this.#byFingerprint = new Map(peers.flatMap((one) => [...one.fingerprints].map((print) => [print, one] as const)))
  }

  ofMember(member: string): Peer | undefined {
    return this.#byMember.get(member)
  }

  /** The peer that may present the certificate with this fingerprint. */
  ofCertificate(fingerprint: string): Peer | undefined {
    return this.#byFingerprint.get(fingerprint)
  }
}
