// Builds the registry with all its admission plugins and the webhooks: the same on every thread.
import { createAdmission } from '../admission/admission.ts'
import { certificateSigners } from '../admission/certificate-signers.ts'
import { logicalClusterFinalizer } from '../admission/logical-cluster-finalizer.ts'
import { standardPlugins } from '../admission/plugins/index.ts'
import { rbacWrites } from '../admission/rbac-writes.ts'
import { createRbacWriteCheck, forbiddenError, type RbacAuthorizer } from '../authz/index.ts'
import { validatingPolicies } from '../policies/validating-policies.ts'
import { createWebhooks } from '../webhooks/create-webhooks.ts'
import type { WebhookParts } from '../webhooks/webhook-parts.ts'
import { Registry } from './registry.ts'

export interface RegistryParts extends WebhookParts {
  readonly authorizer: RbacAuthorizer
  /** This server keeps its LogicalClusters in a logical cluster of its own. */
  readonly hasRoot: boolean
}

export function createRegistry({ authorizer, hasRoot, ...webhookParts }: RegistryParts): Registry {
  const plugins = [
    ...standardPlugins(),
    ...(hasRoot ? [logicalClusterFinalizer] : []),
    rbacWrites(createRbacWriteCheck(authorizer)),
    certificateSigners(authorizer),
    validatingPolicies({ authorizer, catalog: webhookParts.catalog }),
  ]
  return new Registry({
    async mayCreate({ definition: { info }, context: { user, cluster, work }, namespace, signal }, name) {
      const { group, version, resource } = info
      const attributes = { verb: 'create', resource: { group, version, resource, subresource: '', namespace, name } }
      const { allowed, reason } = await authorizer.authorize(user, attributes, cluster, work, signal)
      if (!allowed) throw forbiddenError(user, attributes, reason)
    },
    admission: createAdmission(plugins, createWebhooks(webhookParts)),
  })
}
