// Builds the registry with all its admission plugins: the same on every thread.
import { createAdmission } from '../admission/admission.ts'
import { certificateSigners } from '../admission/certificate-signers.ts'
import { logicalClusterFinalizer } from '../admission/logical-cluster-finalizer.ts'
import { standardPlugins } from '../admission/plugins/index.ts'
import { rbacWrites } from '../admission/rbac-writes.ts'
import { createRbacWriteCheck, forbiddenError, type RbacAuthorizer } from '../authz/index.ts'
import { Registry } from './registry.ts'

/** `hasRoot`: this server keeps its LogicalClusters in a logical cluster of its own. */
export function createRegistry({ authorizer, hasRoot }: { authorizer: RbacAuthorizer; hasRoot: boolean }): Registry {
  return new Registry({
    async mayCreate({ definition: { info }, context: { user, cluster, work }, namespace, signal }, name) {
      const { group, version, resource } = info
      const attributes = { verb: 'create', resource: { group, version, resource, subresource: '', namespace, name } }
      const { allowed, reason } = await authorizer.authorize(user, attributes, cluster, work, signal)
      if (!allowed) throw forbiddenError(user, attributes, reason)
    },
    admission: createAdmission([
      ...standardPlugins(),
      ...(hasRoot ? [logicalClusterFinalizer] : []),
      rbacWrites(createRbacWriteCheck(authorizer)),
      certificateSigners(authorizer),
    ]),
  })
}
