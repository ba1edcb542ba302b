// Serving certificates in a Secret of the host: each certificate is kept under its names, so that processes with the
// same names share a certificate, and processes with other names do not overwrite it.
import { createHash, X509Certificate } from 'node:crypto'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'
import { isRenewalDue, tryKeyPair, type KeyPair, type ServingCertificateStore } from '#virtualapi/index.ts'

const secrets = { group: '', version: 'v1', resource: 'secrets' } as const
const name = 'kcp-serving-certificates'
/**
 * Maximum number of kept certificates; those that expire first are dropped. A process with a new address adds a
 * certificate.
 */
const maxKept = 16
const tries = 5

interface Secret extends KubeObject {
  data?: Record<string, string>
}

/** The store of `installationKeys`. Rejects with StatusError if the host does not respond. */
export function hostServingCertificates(
  client: KubeClient,
  { namespace, signal }: { readonly namespace: string; readonly signal: AbortSignal },
): ServingCertificateStore {
  const read = (): Promise<Secret | undefined> => client.tryGet<Secret>(secrets, { namespace, name }, { signal })
  const trySave = async (names: readonly string[], pair: KeyPair): Promise<KeyPair> => {
    const secret = await read()
    const data = secret?.data ?? {}
    const other = pairOf(data, names)
    if (other !== undefined && !isRenewalDue(other.certificate)) return other
    const next = { ...data, [keyOf(names)]: Buffer.from(pair.certificate + pair.key).toString('base64') }
    const metadata = secret?.metadata ?? { name, namespace }
    const object: Secret = { apiVersion: 'v1', kind: 'Secret', metadata, data: latest(next) }
    await (secret === undefined
      ? client.create(secrets, object, { signal })
      : client.update(secrets, object, { signal }))
    return pair
  }
  return {
    load: async (names) => pairOf((await read())?.data ?? {}, names),
    async save(names, pair) {
      for (let attempt = 1; ; attempt++) {
        try {
          return await trySave(names, pair)
        } catch (error) {
          const lostRace = isStatusError(error, 'Conflict') || isStatusError(error, 'AlreadyExists')
          if (!lostRace || attempt === tries) throw error
        }
      }
    },
  }
}

function keyOf(names: readonly string[]): string {
  return `${createHash('sha256').update(names.join()).digest('hex').slice(0, 40)}.pem`
}

function pairOf(data: Readonly<Record<string, string>>, names: readonly string[]): KeyPair | undefined {
  const text = data[keyOf(names)]
  return text === undefined ? undefined : tryKeyPair(Buffer.from(text, 'base64').toString())
}

/** The entries that expire last, without entries that are no certificates. */
function latest(data: Readonly<Record<string, string>>): Record<string, string> {
  const expiryOf = (text: string): number => {
    const pair = tryKeyPair(Buffer.from(text, 'base64').toString())
    return pair === undefined ? 0 : new X509Certificate(pair.certificate).validToDate.getTime()
  }
  return Object.fromEntries(
    Object.entries(data)
      .map(([key, text]) => ({ key, text, expires: expiryOf(text) }))
      .filter(({ expires }) => expires > 0)
      .sort((a, b) => b.expires - a.expires)
      .slice(0, maxKept)
      .map(({ key, text }) => [key, text]),
  )
}
