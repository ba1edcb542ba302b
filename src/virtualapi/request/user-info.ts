// The authenticated user of a request.
import type { ClusterId } from '#apimachinery/meta/index.ts'

export interface UserInfo {
  readonly name: string
  readonly uid?: string
  readonly groups: readonly string[]
  readonly extra: Readonly<Record<string, readonly string[]>>
  /**
   * Where this identity is valid: in one logical cluster (its certificates and tokens), in the host (front-proxy
   * headers, rights by spec.owners), or in the whole installation (our own processes, the administrator's bootstrap
   * certificate).
   */
  readonly realm:
    { readonly kind: 'cluster'; readonly id: ClusterId } | { readonly kind: 'host' } | { readonly kind: 'installation' }
  /**
   * The user under its own names, if `realm` is an ancestor of the logical cluster of the request. Only authentication
   * sets it; a user with the same names and without it, such as an impersonated one, inherits nothing.
   */
  readonly home?: UserInfo
}

export const anonymous: UserInfo = {
  name: 'system:anonymous',
  groups: ['system:unauthenticated'],
  extra: {},
  realm: { kind: 'host' },
}
