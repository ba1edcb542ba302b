// Builds the registry with all its admission plugins and webhooks, in the same way on every thread.
import { createAdmission } from '#virtualapi/write/admission/admission.ts'
import { certificateSigners } from '#virtualapi/write/admission/certificate-signers.ts'
import { logicalClusterFinalizer } from '#virtualapi/write/admission/logical-cluster-finalizer.ts'
import { standardPlugins } from '#virtualapi/write/admission/plugins/index.ts'
import type { MayRunPods } from '#virtualapi/write/admission/plugins/pod-security.ts'
import { placementPreview } from '#virtualapi/write/admission/placement-preview.ts'
import { separationWarnings } from '#virtualapi/write/admission/separation-warnings.ts'
import { placementTargets } from '#virtualapi/write/admission/placement-targets.ts'
import type { Fleet } from '#virtualapi/write/admission/placement-rules.ts'
import { requiredAdmission } from '#virtualapi/write/admission/provider-admission.ts'
import { sharedApis } from '#virtualapi/write/admission/shared-apis.ts'
import { viewWrites } from '#virtualapi/write/admission/view-writes.ts'
import { rbacWrites } from '#virtualapi/write/admission/rbac-writes.ts'
import {
  clustersInTree,
  hiddenDefinitions,
  inheritedWrites,
  validAncestry,
} from '#virtualapi/write/admission/tree-of-clusters.ts'
import type { TreeCheck } from '#virtualapi/hierarchy/tree-check.ts'
import type { Ancestors } from '#virtualapi/hierarchy/ancestors.ts'
import type { ClusterDirectory } from '#virtualapi/request/logical-cluster.ts'
import { isWithoutPlugin, type PlainCluster } from '#virtualapi/request/plain-cluster.ts'
import { createRbacWriteCheck, forbiddenError, type RbacAuthorizer } from '#virtualapi/auth/authz/index.ts'
import { mutatingPolicies, providedMutatingPolicies } from '#virtualapi/write/policies/mutating-policies.ts'
import { readParamsCheck } from '#virtualapi/write/policies/read-params-check.ts'
import { providedValidatingPolicies, validatingPolicies } from '#virtualapi/write/policies/validating-policies.ts'
import type { LedgerFor } from '#virtualapi/write/quota/index.ts'
import { createWebhooks } from '#virtualapi/write/webhooks/create-webhooks.ts'
import type { WebhookDependencies } from '#virtualapi/write/webhooks/webhook-dependencies.ts'
import { Registry } from './registry.ts'

export interface RegistryDependencies extends WebhookDependencies {
  readonly authorizer: RbacAuthorizer
  /** This server keeps its LogicalClusters in a logical cluster of its own. */
  readonly hasRoot: boolean
  /** The only cluster of this server; absent: it serves logical clusters. */
  readonly plain?: PlainCluster | undefined
  /**
   * The members. If this is absent or returns undefined, admission does not check targets; the operator then reports a
   * workload with a forbidden target as Held.
   */
  readonly fleet?: () => Fleet | undefined
  /** True if a member may run pods of a logical cluster with these labels. Absent: always true. */
  readonly mayRunPods?: MayRunPods
  /** False: no group apis.kcp.io is served. Default: true, except on a server of one cluster. */
  readonly servesSharedApis?: boolean
  /** The logical clusters, whose exports others may bind. Absent on the offload thread. */
  readonly directory?: Pick<ClusterDirectory, 'byName'>
  /** The tree of logical clusters; absent: no logical cluster has a parent. */
  readonly tree?:
    | {
        readonly ancestors: Ancestors
        readonly directory: Pick<ClusterDirectory, 'byName'>
        /** Only on the main thread. */
        readonly check?: TreeCheck
      }
    | undefined
  /** The quota ledgers that all threads share. Default: the ledgers of this thread. */
  readonly ledgerFor?: LedgerFor
}

export function createRegistry({
  authorizer,
  hasRoot,
  plain,
  catalog,
  conversions,
  outbound,
  fleet,
  mayRunPods,
  ledgerFor,
  directory,
  servesSharedApis,
  tree,
  providers,
}: RegistryDependencies): Registry {
  const policyParts = { authorizer, catalog, conversions, ancestors: tree?.ancestors, providers }
  const plugins = [
    ...(tree ? [validAncestry(tree.directory)] : []),
    ...standardPlugins(mayRunPods === undefined ? {} : { mayRunPods }),
    ...(hasRoot ? [logicalClusterFinalizer, clustersInTree(tree?.check)] : []),
    ...(fleet ? [placementTargets(fleet), placementPreview(fleet), separationWarnings(fleet)] : []),
    viewWrites,
    rbacWrites(createRbacWriteCheck(authorizer)),
    sharedApis({ authorizer, directory }),
    ...(tree ? [inheritedWrites(authorizer), hiddenDefinitions(tree.ancestors)] : []),
    readParamsCheck({ authorizer, catalog }),
    certificateSigners(authorizer),
    validatingPolicies(policyParts),
    requiredAdmission,
    providedValidatingPolicies(policyParts),
  ]
  return new Registry({
    async mayCreate({ definition: { info }, context: { user, cluster, work, rule }, namespace, signal }, name) {
      if (rule?.allows('create', '') === true) return
      const { group, version, resource } = info
      const attributes = { verb: 'create', resource: { group, version, resource, subresource: '', namespace, name } }
      const { allowed, reason } = await authorizer.authorize(user, attributes, { cluster, work, signal })
      if (!allowed) throw forbiddenError(user, attributes, reason)
    },
    admission: createAdmission({
      plugins: plain === undefined ? plugins : plugins.filter(({ name }) => !isWithoutPlugin(plain, name)),
      // The provider's policies run first: the policies of the consumer and of its ancestors see their changes.
      policies: [providedMutatingPolicies(policyParts), mutatingPolicies(policyParts)],
      webhooks: createWebhooks({ ...policyParts, outbound }),
    }),
    conversions,
    sharedApis: servesSharedApis ?? plain === undefined,
    ...(ledgerFor && { ledgerFor }),
  })
}
