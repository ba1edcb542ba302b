// clientConfig of admission webhooks and of conversions of CustomResourceDefinitions, as it is stored.
import type { OutboundTarget } from './outbound.ts'

export interface StoredClientConfig {
  readonly url?: string | null
  readonly caBundle?: string | null
  readonly service?: { name: string; namespace: string; port?: number; path?: string } | null
}

/** The target to which a clientConfig leads. */
export function outboundTarget({ url, service, caBundle }: StoredClientConfig): OutboundTarget {
  return {
    ...(url == null ? {} : { url }),
    ...(caBundle == null ? {} : { caBundle: Buffer.from(caBundle, 'base64').toString() }),
    ...(service == null
      ? {}
      : {
          service: {
            name: service.name,
            namespace: service.namespace,
            port: service.port ?? 443,
            path: service.path ?? '',
          },
        }),
  }
}
