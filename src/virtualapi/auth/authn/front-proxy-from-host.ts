// Watches the ConfigMap in which the host publishes its front proxy, whose certificates rotate. `client-ca-file` in it,
// the host's authority for client certificates, is ignored: trusting it would let host users act as tenants.
import { parseJsonText } from '#apimachinery/json/index.ts'
import type { GroupVersionResource, KubeObject } from '#apimachinery/meta/index.ts'
import { createInformer, type DeepReadonly, type KubeClient } from '#client/index.ts'
import type { Logger } from '#telemetry/index.ts'
import { parseCertificates } from './client-certificates.ts'
import type { FrontProxyConfig } from './front-proxy.ts'

export interface FrontProxySource extends AsyncDisposable {
  /** The current configuration, for createAuthenticator. Undefined: none or unusable, so no front proxy is trusted. */
  readonly current: () => FrontProxyConfig | undefined
  /** Resolves once the ConfigMap was read or found missing; serve only then. Rejects with signal.reason. */
  synced(signal: AbortSignal): Promise<void>
}

const configMaps: GroupVersionResource = { group: '', version: 'v1', resource: 'configmaps' }
const namespace = 'kube-system'
const name = 'extension-apiserver-authentication'

/** Follows the host's ConfigMap until the signal. */
export function frontProxyFromHost(options: {
  readonly client: KubeClient
  readonly log: Logger
  readonly signal: AbortSignal
}): FrontProxySource {
  const { log } = options
  const informer = createInformer({ ...options, gvr: configMaps, namespace, fieldSelector: `metadata.name=${name}` })
  let current: FrontProxyConfig | undefined
  const stop = informer.onChange(({ after }) => {
    if (after?.metadata.name !== undefined && after.metadata.name !== name) return
    try {
      current = after === undefined ? undefined : parseFrontProxyConfig(after)
      if (current === undefined)
        log.warn('the host publishes no front proxy: identity headers are ignored', { namespace, name })
      else log.info('read the front proxy of the host', { allowedNames: current.allowedNames })
    } catch (error) {
      // Trusting no front proxy is safer than trusting the former authority for ever.
      current = undefined
      log.error('the front proxy configuration of the host is unusable: identity headers are ignored', {
        namespace,
        name,
        error,
      })
    }
  })
  return {
    current: () => current,
    synced: (signal) => informer.synced(signal),
    [Symbol.asyncDispose]: async () => {
      stop()
      await informer[Symbol.asyncDispose]()
    },
  }
}

/**
 * Parses the ConfigMap. Undefined: there is no front proxy. Throws a plain Error for an invalid or unsafe
 * configuration.
 */
export function parseFrontProxyConfig(object: DeepReadonly<KubeObject>): FrontProxyConfig | undefined {
  const data = (object['data'] ?? {}) as Readonly<Record<string, unknown>>
  const ca = data['requestheader-client-ca-file']
  if (typeof ca !== 'string' || ca.trim() === '') return undefined
  if (parseCertificates(ca).length === 0) throw new Error('requestheader-client-ca-file holds no certificate')
  const allowedNames = list(data, 'requestheader-allowed-names')
  if (allowedNames.length === 0) {
    throw new Error('requestheader-allowed-names is empty: any certificate of that authority could impersonate anybody')
  }
  const config = {
    ca,
    allowedNames,
    usernameHeaders: list(data, 'requestheader-username-headers'),
    groupHeaders: list(data, 'requestheader-group-headers'),
    extraPrefixes: list(data, 'requestheader-extra-headers-prefix'),
    // The host does not publish these headers before Kubernetes 1.32.
    uidHeaders: list(data, 'requestheader-uid-headers'),
  }
  if (config.usernameHeaders.length === 0) throw new Error('requestheader-username-headers is empty')
  return config
}

/**
 * The strings in a value, which is a JSON list; empty if the value is absent. Throws a plain Error for any other value.
 */
function list(data: Readonly<Record<string, unknown>>, key: string): string[] {
  const text = data[key]
  if (text === undefined || text === '') return []
  const items: unknown = typeof text === 'string' ? parseJsonText(text) : undefined
  if (!Array.isArray(items) || !items.every((item) => typeof item === 'string'))
    throw new Error(`${key} is not a list of strings`)
  return items.map((item) => item.trim()).filter((item) => item !== '')
}
