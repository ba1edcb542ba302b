// Requests for which kcp's own fields are ordinary fields.
import type { RequestContext } from '#virtualapi/kinds/resources/resource-definition.ts'

/** True for the installation itself, and for everybody in a plain cluster, where the syncer is an ordinary user. */
export function mayWriteOwnFields({ user, cluster }: Pick<RequestContext, 'user' | 'cluster'>): boolean {
  return user.realm.kind === 'installation' || cluster.isPlain === true
}
