// Certificates are replaced long before they expire, while the old ones still hold: whoever fails to renew one has a third of
// its validity to try again.
import { X509Certificate } from 'node:crypto'
import { systemClock, type Clock } from '#async/index.ts'

/** True once two thirds of the validity of this certificate (PEM) are over, and before it begins. */
export function isRenewalDue(certificate: string, { clock = systemClock }: { clock?: Clock } = {}): boolean {
  const { validFromDate, validToDate } = new X509Certificate(certificate)
  const [from, to, now] = [validFromDate.getTime(), validToDate.getTime(), clock.now()]
  return now < from || now >= from + ((to - from) * 2) / 3
}
