// The Secret with the agent's key and certificate, which all replicas of the agent share.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { tolerate } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'
import { memberParts } from '#crds/index.ts'
import { newAgentKey } from './agent-key.ts'

export interface KeptIdentity {
  /** PEM. */
  readonly key: string
  /** PEM; absent: none was issued yet. */
  readonly certificate?: string
  /** The hash of the token for which the key was made: another token means another key. */
  readonly tokenHash: string
  readonly resourceVersion: string
}

interface Secret extends KubeObject {
  data?: Record<string, string>
}

const secrets = { group: '', version: 'v1', resource: 'secrets' } as const
const name = memberParts.agent
const fields = { key: 'tls.key', certificate: 'tls.crt', tokenHash: 'token-hash' } as const

export class IdentityStore {
  readonly #client: Pick<KubeClient, 'tryGet' | 'create' | 'patch'>
  readonly #namespace: string

  constructor(client: Pick<KubeClient, 'tryGet' | 'create' | 'patch'>, namespace: string) {
    this.#client = client
    this.#namespace = namespace
  }

  /** The identity for the token: the kept one, or one with a new key if the token is another one. */
  async of(tokenHash: string, signal: AbortSignal): Promise<KeptIdentity> {
    for (;;) {
      const known = await this.#read(signal)
      if (known?.tokenHash === tokenHash) return known
      const fresh = { [fields.key]: newAgentKey(), [fields.tokenHash]: tokenHash }
      // Another replica may write first: then its key counts, here, too.
      if (known === undefined) await this.#create(fresh, signal)
      else await this.#patch(known.resourceVersion, { ...fresh, [fields.certificate]: null }, signal)
    }
  }

  /** Keeps a new certificate with its key. False if another replica has kept something meanwhile, which counts. */
  async keep(
    { resourceVersion }: KeptIdentity,
    { certificate, key }: { readonly certificate: string; readonly key: string },
    signal: AbortSignal,
  ): Promise<boolean> {
    return await this.#patch(resourceVersion, { [fields.certificate]: certificate, [fields.key]: key }, signal)
  }

  async #read(signal: AbortSignal): Promise<KeptIdentity | undefined> {
    const secret = await this.#client.tryGet<Secret>(secrets, { namespace: this.#namespace, name }, { signal })
    if (secret === undefined) return undefined
    const text = (field: string): string => Buffer.from(secret.data?.[field] ?? '', 'base64').toString()
    const certificate = text(fields.certificate)
    return {
      key: text(fields.key),
      tokenHash: text(fields.key) === '' ? '' : text(fields.tokenHash),
      resourceVersion: secret.metadata.resourceVersion ?? '',
      ...(certificate !== '' && { certificate }),
    }
  }

  async #create(data: Record<string, string>, signal: AbortSignal): Promise<void> {
    const metadata = { name, namespace: this.#namespace, labels: { 'app.kubernetes.io/part-of': 'kcp' } }
    const secret: Secret = { apiVersion: 'v1', kind: 'Secret', metadata, type: 'Opaque', data: encoded(data) }
    await this.#client.create(secrets, secret, { signal }).catch(tolerate('AlreadyExists'))
  }

  async #patch(resourceVersion: string, data: Record<string, string | null>, signal: AbortSignal): Promise<boolean> {
    const ref = { namespace: this.#namespace, name }
    const patch = { metadata: { resourceVersion }, data: encoded(data) }
    const written = await this.#client.patch(secrets, ref, 'merge', patch, { signal }).catch(tolerate('Conflict'))
    return written !== undefined
  }
}

function encoded<T extends string | null>(data: Record<string, T>): Record<string, T> {
  const encode = (text: T): T => (text === null ? text : (Buffer.from(text).toString('base64') as T))
  return Object.fromEntries(Object.entries(data).map(([field, text]) => [field, encode(text)]))
}
