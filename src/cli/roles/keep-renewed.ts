// Periodic renewal of credentials that expire, until the process ends, and the metric of the expiry of certificates.
import { X509Certificate } from 'node:crypto'
import { sleep } from '#async/index.ts'
import type { Logger, Metrics } from '#telemetry/index.ts'

export interface Renewal {
  /** Name for the log, such as `serving certificate`. */
  readonly what: string
  /** Renews the credential if a renewal is due. Called again later if it rejects. */
  readonly renew: () => Promise<void>
}

/**
 * Far below a third of the lifetime of any certificate. After a sleep, a machine may use an expired certificate for
 * this long.
 */
const defaultEveryMs = 5 * 60_000

/**
 * Calls every `renew` each `everyMs` milliseconds (default five minutes) until it is disposed of. Failures are logged.
 */
export function keepRenewed(
  renewals: readonly Renewal[],
  { log, everyMs = defaultEveryMs }: { readonly log: Logger; readonly everyMs?: number },
): AsyncDisposable {
  const life = new AbortController()
  const run = async (): Promise<void> => {
    for (;;) {
      await sleep(everyMs, life.signal, { unref: true })
      for (const { what, renew } of renewals)
        await renew().catch((error: unknown) => log.warn('could not renew what will expire', { what, error }))
    }
  }
  const done = run().catch(() => undefined)
  return {
    async [Symbol.asyncDispose]() {
      life.abort(new DOMException('the process stops', 'AbortError'))
      await done
    },
  }
}

type CertificateName = 'serving' | 'serving-authority' | 'client-authority' | 'metrics-client'

/** Reports the expiry of a certificate (PEM) to the metric; call it again after a renewal. */
export type TellExpiry = (certificate: CertificateName, pem: string) => void

/** Registers `kcp_certificate_expiry_timestamp_seconds`. */
export function certificateExpiry(metrics: Pick<Metrics, 'gauge'>): TellExpiry {
  const gauge = metrics.gauge({
    name: 'kcp_certificate_expiry_timestamp_seconds',
    help: 'When a certificate of the installation expires, in seconds since 1970',
    labels: ['certificate'],
    across: 'min',
  })
  return (certificate, pem) => gauge.set(new X509Certificate(pem).validToDate.getTime() / 1000, { certificate })
}
