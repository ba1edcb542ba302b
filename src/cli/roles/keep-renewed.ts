// Periodic renewal of everything that expires, until the process ends, and the metric of when certificates expire.
import { X509Certificate } from 'node:crypto'
import { sleep } from '#async/index.ts'
import type { Logger, Metrics } from '#telemetry/index.ts'

export interface Renewal {
  /** For the log, such as `serving certificate`. */
  readonly what: string
  /** Renews it where that is due, and does nothing else. Called again later where it rejects. */
  readonly renew: () => Promise<void>
}

/** Far below a third of what any certificate lives, and the longest that a machine which slept uses an expired one. */
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
