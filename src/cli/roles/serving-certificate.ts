// The certificate that a listener serves with, replaced while it listens.
import type { Logger } from '#telemetry/index.ts'
import type { KeyPair, Pki, VirtualApi } from '#virtualapi/index.ts'
import type { Renewal, TellExpiry } from './keep-renewed.ts'

type Listener = Awaited<ReturnType<VirtualApi['listen']>>

export interface ServingCertificate {
  readonly pki: Pick<Pki, 'servingCertificate'>
  /** DNS names and addresses beside our own. */
  readonly hosts: readonly string[]
  readonly listener: Pick<Listener, 'setCertificate'>
  /** The key pair with which the listener was started. */
  readonly current: KeyPair
  readonly tellExpiry: TellExpiry
  readonly log: Logger
}

/** The renewal of a listener's certificate. New connections get the renewed certificate; open connections continue. */
export function servingCertificateRenewal({
  pki,
  hosts,
  listener,
  current,
  tellExpiry,
  log,
}: ServingCertificate): Renewal {
  let served = current
  tellExpiry('serving', current.certificate)
  return {
    what: 'serving certificate',
    async renew() {
      const pair = await pki.servingCertificate(hosts)
      if (pair.certificate === served.certificate) return
      listener.setCertificate(pair)
      served = pair
      tellExpiry('serving', pair.certificate)
      log.info('the serving certificate was renewed', {})
    },
  }
}
