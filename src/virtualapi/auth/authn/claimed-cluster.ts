// The logical cluster that the credentials of a request name. Nothing is verified: the name only decides which process
// verifies the credentials.
import { X509Certificate } from 'node:crypto'
import type { DetailedPeerCertificate } from 'node:tls'
import { decodeJwt } from 'jose'
import { tryClusterId, type ClusterId } from '#apimachinery/meta/index.ts'
import { tryRealm } from './pki/index.ts'
import { issuerOf } from './service-account-tokens.ts'

const issuerPrefix = issuerOf('' as ClusterId)
const maxTokenLength = 16 * 1024

const byCertificate = new WeakMap<DetailedPeerCertificate, { readonly cluster: ClusterId | undefined }>()

/**
 * The logical cluster of a client certificate; undefined without a certificate, or if it does not name exactly one
 * logical cluster.
 */
export function clusterOfCertificate(certificate: DetailedPeerCertificate | undefined): ClusterId | undefined {
  if ((certificate as { raw?: Buffer } | undefined)?.raw === undefined || certificate === undefined) return undefined
  let claimed = byCertificate.get(certificate)
  if (claimed === undefined) byCertificate.set(certificate, (claimed = { cluster: realmIn(certificate.raw) }))
  return claimed.cluster
}

function realmIn(raw: Buffer): ClusterId | undefined {
  try {
    const names = new X509Certificate(raw).subjectAltName?.split(', ') ?? []
    const realms = names.flatMap((name) => (name.startsWith('URI:') ? (tryRealm(name.slice(4)) ?? []) : []))
    return realms.length === 1 && realms[0] !== 'installation' ? realms[0] : undefined
  } catch {
    return undefined
  }
}

/**
 * The logical cluster in the token's issuer, if kcp is the issuer, else in its only audience `ID.MEMBER-ID`; undefined
 * if the request has no such token.
 */
export function clusterOfToken(authorization: string | undefined): ClusterId | undefined {
  const token = /^bearer +(\S+)/i.exec(authorization ?? '')?.[1]
  if (token === undefined || token.length > maxTokenLength) return undefined
  try {
    const { iss, aud } = decodeJwt(token)
    if (iss?.startsWith(issuerPrefix) === true) return tryClusterId(iss.slice(issuerPrefix.length))
    const ids = (typeof aud === 'string' ? [aud] : (aud ?? [])).flatMap((audience) => {
      const dot = audience.indexOf('.')
      return dot < 0 ? [] : (tryClusterId(audience.slice(0, dot)) ?? [])
    })
    return ids.length === 1 ? ids[0] : undefined
  } catch {
    return undefined
  }
}
