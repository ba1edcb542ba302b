// Who asks.
import type { ClusterId } from '../../apimachinery/meta/index.ts'

export interface UserInfo {
  readonly name: string
  readonly uid?: string
  readonly groups: readonly string[]
  readonly extra: Readonly<Record<string, readonly string[]>>
  /**
   * Where this identity means anything: one logical cluster (its certificates and tokens), the host (front-proxy
   * headers: admitted by the host's RBAC, named by spec.owners), or the whole installation (our own processes and the
   * administrator's bootstrap certificate).
   */
  readonly realm:
    { readonly kind: 'cluster'; readonly id: ClusterId } | { readonly kind: 'host' } | { readonly kind: 'installation' }
}

export const anonymous: UserInfo = {
  name: 'system:anonymous',
  groups: ['system:unauthenticated'],
  extra: {},
  realm: { kind: 'host' },
}
