// The argument of an endpoint: the exchange, the definition of the requested resource, and the target for the registry.
import { goQuote } from '#apimachinery/text/index.ts'
import { badRequest, notFound, pathNotFound } from '#apimachinery/status/index.ts'
import type { ClusterObjects } from '#store/watch-cache/index.ts'
import { negotiate, type Representation } from '#virtualapi/codec/negotiate.ts'
import type { FieldValidation } from '#virtualapi/codec/read-object.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import { fieldManagerOf } from './field-manager.ts'
import { patchTypeOf, type PatchType } from './patch-type.ts'
import { writeOptionsOf } from './write-options.ts'
import { withClusterAnnotations } from './cluster-annotations.ts'
import { groupNotServed, requirePath } from './served-path.ts'
import type { RequestInfo, ResourceTarget } from '#virtualapi/request/request-info.ts'
import type { RegistryTarget } from '#virtualapi/write/registry/write.ts'
import type { RequestContext, ResourceDefinition } from '#virtualapi/kinds/resources/resource-definition.ts'
import type { Exchange } from '#virtualapi/request/exchange.ts'
import type { ObjectDependencies } from './dependencies.ts'

/** A verb on a resource of one logical cluster. */
export interface EndpointCall<Dependencies extends ObjectDependencies = ObjectDependencies> {
  readonly exchange: Exchange
  readonly dependencies: Dependencies
  readonly cluster: LogicalCluster
  readonly objects: ClusterObjects
  readonly definition: ResourceDefinition
  readonly request: ResourceTarget
  readonly query: URLSearchParams
  readonly representation: Representation
  /** The patch type of a PATCH; undefined for other verbs, and for a Content-Type that is no patch. */
  readonly patchType: PatchType | undefined
  /** The effect of unknown and duplicate fields: none, a warning, or an error. */
  readonly fieldValidation: FieldValidation
  /** The target of the registry's functions: definition, namespace, user, options. */
  readonly target: RegistryTarget
}

/** Finds the resource and gathers the data that its verbs need. Throws 404 if the resource is not served. */
export async function prepareCall<Dependencies extends ObjectDependencies>(
  exchange: Exchange,
  dependencies: Dependencies,
  request: ResourceTarget,
): Promise<EndpointCall<Dependencies>> {
  const { cluster, signal, info } = exchange
  if (cluster === undefined) throw pathNotFound()
  const objects = await dependencies.watchCache.cluster(cluster.id, { signal })
  const { catalog } = dependencies
  let definition = catalog.find(objects, request)
  if (definition === undefined) {
    await catalog.load(objects, signal)
    definition = catalog.find(objects, request)
  }
  if (definition === undefined) throw groupNotServed(request.group)
  if (exchange.view !== undefined)
    definition = withClusterAnnotations(
      definition,
      { name: cluster.name, path: exchange.view.pathOf(cluster) },
      exchange,
    )
  requirePath(definition.info, request, info)
  requireName(request.name)
  // For custom resources, kube-apiserver looks for the subresource before it reads the options.
  if (!definition.info.builtIn && request.subresource !== '') requireSubresource({ definition, request })
  const isProxy = request.group === '' && request.subresource === 'proxy'
  const patchType = info.verb === 'patch' ? patchTypeOf(exchange.header('content-type')) : undefined
  // The query and the Accept header of a proxy request are meant for the pod.
  const options = writeOptionsOf(info.query, isProxy ? 'get' : info.verb, {
    isApply: patchType === 'apply',
  })
  const { deprecationWarning } = definition
  if (deprecationWarning !== undefined) exchange.warnings.push(deprecationWarning)
  const context: RequestContext = {
    cluster,
    objects,
    user: exchange.user,
    dryRun: options.dryRun,
    fieldManager: writesObject(info.verb)
      ? fieldManagerOf(info.query.get('fieldManager'), exchange.header('user-agent'))
      : '',
    warnings: exchange.warnings,
    work: exchange.work,
    now: dependencies.clock.now(),
    ...(options.shown === undefined ? {} : { options: options.shown }),
    annotate: (key, value) => exchange.annotate(key, value),
    whileWaiting: (response) => exchange.whileWaiting(response),
    turn: () => exchange.turn(),
    grown: (size) => exchange.grown?.(size),
    allocationFor: dependencies.allocationFor,
    ...ruleOf(exchange, cluster, request),
  }
  // Status writes of our own controllers may be committed later, together with other writes: no client waits for them
  // to be on disk.
  const deferrable = exchange.request.loopbackUser !== undefined && request.subresource === 'status'
  return {
    exchange,
    dependencies,
    cluster,
    objects,
    definition,
    request,
    query: info.query,
    patchType,
    fieldValidation: options.fieldValidation,
    representation: negotiate(isProxy ? undefined : exchange.header('accept'), negotiationOf(definition, info)),
    target: { definition, context, signal, namespace: request.namespace, deferrable },
  }
}

function ruleOf({ view }: Exchange, { id }: LogicalCluster, request: ResourceTarget): Pick<RequestContext, 'rule'> {
  const rule = view?.ruleFor(id, request)
  return rule === undefined ? {} : { rule }
}

function writesObject(verb: RequestInfo['verb']): boolean {
  return verb === 'create' || verb === 'update' || verb === 'patch'
}

/** Refuses `%` in a name. Names of dots and names with slashes were refused with the path. */
function requireName(name: string): void {
  if (name.includes('%')) throw badRequest(`Name parameter invalid: ${goQuote(name)}: may not contain '%'`)
}

function negotiationOf({ info }: ResourceDefinition, { verb }: RequestInfo): Parameters<typeof negotiate>[1] {
  return verb === 'list' || verb === 'watch' || verb === 'deletecollection' ? { info, reads: verb } : { info }
}

/** Throws 404 if the resource has no subresource of this name. */
export function requireSubresource({ definition, request }: Pick<EndpointCall, 'definition' | 'request'>): void {
  if (!definition.info.subresources.some(({ name }) => name === request.subresource))
    throw notFound(definition.info, request.name)
}
