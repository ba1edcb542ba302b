// Tells in a metric when the certificates of this process expire.
import { X509Certificate } from 'node:crypto'
import type { Metrics } from '#telemetry/index.ts'

export type CertificateName = 'serving' | 'serving-authority' | 'client-authority' | 'metrics-client'

/** Sets when a certificate (PEM) expires; call it again when it was renewed. */
export type TellExpiry = (certificate: CertificateName, pem: string) => void

/** Registers `kcp_certificate_expiry_timestamp_seconds`. */
export function certificateExpiry(metrics: Pick<Metrics, 'gauge'>): TellExpiry {
  const gauge = metrics.gauge({
    name: 'kcp_certificate_expiry_timestamp_seconds',
    help: 'When a certificate of the installation expires, in seconds since 1970',
    labels: ['certificate'],
  })
  return (certificate, pem) => gauge.set(new X509Certificate(pem).validToDate.getTime() / 1000, { certificate })
}
