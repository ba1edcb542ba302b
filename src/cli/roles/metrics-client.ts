// A client certificate for Prometheus, in a Secret of the host: it may read /metrics of kcp apiserver and nothing else.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { KubeClient } from '#client/index.ts'
import { isRenewalDue, metricsReadersGroup, type Pki } from '#virtualapi/index.ts'
import type { Renewal, TellExpiry } from './keep-renewed.ts'
import { installationNamespace } from './host-installation.ts'

const secrets = { group: '', version: 'v1', resource: 'secrets' } as const
const certificateDays = 90

interface Secret extends KubeObject {
  type?: string
  data?: Record<string, string>
}

export interface MetricsClient {
  readonly client: KubeClient
  /** Name of the Secret, in the installation's namespace. */
  readonly name: string
  readonly pki: Pick<Pki, 'issueClientCertificate' | 'servingCa'>
  readonly tellExpiry: TellExpiry
  readonly signal: AbortSignal
}

/**
 * Keeps the Secret up to date: `tls.crt`, `tls.key`, and `ca.crt`, which verifies our serving certificate. Several
 * replicas may do so at the same time: if another one was first, the renewal rejects with Conflict or AlreadyExists and
 * finds a fresh Secret when it is called again.
 */
export function metricsClientRenewal({ client, name, pki, tellExpiry, signal }: MetricsClient): Renewal {
  return {
    what: 'client certificate of Prometheus',
    async renew() {
      const kept = await client.tryGet<Secret>(secrets, { namespace: installationNamespace, name }, { signal })
      const certificate = decoded(kept?.data?.['tls.crt'])
      const isCurrent = decoded(kept?.data?.['ca.crt']) === pki.servingCa && isUsable(certificate)
      if (isCurrent) {
        tellExpiry('metrics-client', certificate)
        return
      }
      const pair = await pki.issueClientCertificate({
        commonName: 'kcp:prometheus',
        organizations: [metricsReadersGroup],
        realm: 'installation',
        days: certificateDays,
      })
      const data = {
        'ca.crt': encoded(pki.servingCa),
        'tls.crt': encoded(pair.certificate),
        'tls.key': encoded(pair.key),
      }
      const metadata = kept?.metadata ?? { name, namespace: installationNamespace }
      const object: Secret = {
        apiVersion: 'v1',
        kind: 'Secret',
        type: kept?.type ?? 'kubernetes.io/tls',
        metadata,
        data,
      }
      await (kept === undefined
        ? client.create(secrets, object, { signal })
        : client.update(secrets, object, { signal }))
      tellExpiry('metrics-client', pair.certificate)
    },
  }
}

function isUsable(certificate: string): boolean {
  try {
    return !isRenewalDue(certificate)
  } catch {
    return false
  }
}

function decoded(text = ''): string {
  return Buffer.from(text, 'base64').toString()
}

function encoded(text: string): string {
  return Buffer.from(text).toString('base64')
}
