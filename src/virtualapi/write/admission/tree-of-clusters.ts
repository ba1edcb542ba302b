// Admission of the tree of logical clusters: the label kcp.dev/inherit, and logical clusters whose chain of parents is
// invalid.
import { fieldForbidden } from '#apimachinery/field/index.ts'
import { rootClusterName, type ClusterName } from '#apimachinery/meta/index.ts'
import { conflict, forbidden, invalid, requestEntityTooLarge } from '#apimachinery/status/index.ts'
import { inheritLabel, logicalClusters, type LogicalCluster } from '#crds/index.ts'
import { forbiddenError, type RbacAuthorizer } from '#virtualapi/auth/authz/index.ts'
import type { Ancestor, Ancestors } from '#virtualapi/hierarchy/ancestors.ts'
import type { TreeCheck } from '#virtualapi/hierarchy/tree-check.ts'
import { ancestryOf, placeInTree } from '#virtualapi/request/hierarchy.ts'
import type { ClusterDirectory } from '#virtualapi/request/logical-cluster.ts'
import type { AdmissionPlugin, AdmissionRequest } from './admission.ts'

const inheritable = new Set([
  'clusterroles.rbac.authorization.k8s.io',
  'clusterrolebindings.rbac.authorization.k8s.io',
  'customresourcedefinitions.apiextensions.k8s.io',
  'validatingadmissionpolicies.admissionregistration.k8s.io',
  'validatingadmissionpolicybindings.admissionregistration.k8s.io',
  'mutatingadmissionpolicies.admissionregistration.k8s.io',
  'mutatingadmissionpolicybindings.admissionregistration.k8s.io',
  'placements.kcp.dev',
  'apibindings.apis.kcp.io',
])

/**
 * Writes of an object that holds in descendants need verb `inherit`. Otherwise a user who holds a role in this logical
 * cluster could take it in all below it, by a binding with the label.
 */
export function inheritedWrites(authorizer: Pick<RbacAuthorizer, 'authorize'>): AdmissionPlugin {
  return {
    name: 'InheritedWrites',
    validate({ definition: { info, storageKey }, subresource, name, context, signal }, object, old) {
      if (object === undefined || subresource !== '' || !inheritable.has(storageKey)) return undefined
      const isMarked = [object, old].some((one) => one?.metadata.labels?.[inheritLabel] === 'true')
      if (!isMarked || context.user.realm.kind === 'installation') return undefined
      const { user, cluster, work } = context
      const { group, version, resource } = info
      const attributes = {
        verb: 'inherit',
        resource: { group, version, resource, subresource: '', namespace: '', name },
      }
      return Promise.resolve(authorizer.authorize(user, attributes, { cluster, work, signal })).then(
        ({ allowed, reason }) => {
          if (allowed) return
          const why = `label ${inheritLabel} makes it hold in all logical clusters below`
          throw forbiddenError(user, attributes, reason === '' ? why : `${reason}: ${why}`)
        },
      )
    },
  }
}

/** Tenants cannot write while the chain of parents is invalid: the policies above are not known then. */
export function validAncestry(directory: Pick<ClusterDirectory, 'byName'>): AdmissionPlugin {
  const check = ({ definition, name, context }: AdmissionRequest): void => {
    if (context.cluster.parent === undefined || context.user.realm.kind === 'installation') return
    const { problem } = ancestryOf(context.cluster, directory)
    if (problem !== undefined)
      throw forbidden(definition.info, name, `logical cluster "${context.cluster.name}" takes no writes: ${problem}`)
  }
  return {
    name: 'ValidAncestry',
    validatesParts: true,
    mutate: check,
    // Deletions and subresources have no object to mutate.
    validate: check,
  }
}

/** Tells writers of a CustomResourceDefinition that theirs hides an inherited one. */
export function hiddenDefinitions(ancestors: Ancestors): AdmissionPlugin {
  return {
    name: 'HiddenDefinitions',
    validate({ definition: { storageKey }, operation, name, context }, object) {
      if (object === undefined || operation !== 'CREATE' || context.cluster.parent === undefined) return
      if (storageKey !== 'customresourcedefinitions.apiextensions.k8s.io') return
      const isMarked = ({ objects }: Ancestor): boolean =>
        objects.get(storageKey, '', name)?.facts.labels?.[inheritLabel] === 'true'
      const from = ancestors.above(context.cluster.id).find(isMarked)?.cluster.name
      if (from !== undefined)
        context.warnings.push(`it hides CustomResourceDefinition "${name}" inherited from logical cluster "${from}"`)
    },
  }
}

/**
 * Checks LogicalClusters in `root`, which has them if there is no host, against the tree. `check` is undefined on other
 * threads, to which only objects of megabytes come.
 */
export function clustersInTree(check: TreeCheck | undefined): AdmissionPlugin {
  const isChecked = ({ definition: { info }, subresource, context }: AdmissionRequest): boolean =>
    context.cluster.name === rootClusterName &&
    info.group === logicalClusters.group &&
    info.resource === logicalClusters.resource &&
    subresource === ''
  return {
    name: 'ClustersInTree',
    validate(request, object) {
      if (!isChecked(request)) return undefined
      const { definition, operation, context } = request
      const name = (object?.metadata.name ?? request.name) as ClusterName
      if (operation === 'DELETE') {
        const why = check?.removal(name)
        if (why !== undefined) throw conflict(definition.info, name, why)
        return undefined
      }
      const place = { name, ...placeInTree(object?.['spec'] as LogicalCluster['spec']) }
      if (check === undefined) {
        if (place.parent === undefined && place.limits === undefined) return undefined
        throw requestEntityTooLarge('a LogicalCluster of this size cannot have a parent or limits')
      }
      return check.place(place, context).then((problem) => {
        if (problem !== undefined)
          throw invalid(logicalClusterKindName, name, [fieldForbidden(problem.field, problem.message)])
      })
    },
  }
}

const logicalClusterKindName = { group: logicalClusters.group, kind: 'LogicalCluster' }
