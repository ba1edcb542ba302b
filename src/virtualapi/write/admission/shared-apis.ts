// Admission of apis.kcp.io: who may bind an export, which fields the server alone writes, and valid schemas.
import { fieldInvalid } from '#apimachinery/field/index.ts'
import { jsonEqual } from '#apimachinery/json/index.ts'
import {
  groupResourceText,
  isJsonObject,
  tryClusterName,
  type JsonObject,
  type JsonValue,
  type KubeObject,
} from '#apimachinery/meta/index.ts'
import { typeErrors } from '#apimachinery/schema/index.ts'
import { forbidden, invalid, type StatusCause } from '#apimachinery/status/index.ts'
import { apiBindingFinalizer, apiExports, inheritLabel, sharedApisGroup, type APIBinding } from '#crds/index.ts'
import type { RbacAuthorizer } from '#virtualapi/auth/authz/index.ts'
import { defaultCrd, validateCrd, type CustomResourceDefinition } from '#virtualapi/catalog/apiextensions/index.ts'
import { isSystemDefinition } from '#virtualapi/catalog/sharing/system-definitions.ts'
import { clusterNameOf } from '#virtualapi/catalog/sharing/sharing-index.ts'
import { builtInResource } from '#virtualapi/kinds/resources/builtin-resources.ts'
import { builtInSchema } from '#virtualapi/kinds/resources/builtin-schemas.ts'
import type { ResourceInfo } from '#virtualapi/kinds/resources/resource-info.ts'
import type { ClusterDirectory, LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'
import type { AdmissionPlugin, AdmissionRequest } from './admission.ts'

export interface SharedApiParts {
  readonly authorizer: Pick<RbacAuthorizer, 'authorize'>
  /** Absent on the offload thread, which gets no bindings. */
  readonly directory?: Pick<ClusterDirectory, 'byName'> | undefined
}

export function sharedApis(parts: SharedApiParts): AdmissionPlugin {
  return {
    name: 'SharedApis',
    mutate({ definition, operation }, { metadata }) {
      if (definition.info.group !== sharedApisGroup || definition.info.resource !== 'apibindings') return
      const { finalizers = [] } = metadata
      if (operation === 'CREATE' && !finalizers.includes(apiBindingFinalizer))
        metadata.finalizers = [...finalizers, apiBindingFinalizer]
    },
    validate(request, object, old) {
      const { definition, context } = request
      if (definition.info.group !== sharedApisGroup || context.user.realm.kind === 'installation') return undefined
      requireOwnWriter(request)
      if (object === undefined) return undefined
      requireBounds(request, object)
      if (definition.info.resource === 'apiresourceschemas') requireSchema(request, object, old)
      if (definition.info.resource !== 'apibindings') return undefined
      // The mark binds all logical clusters below, so its author needs the right of the author of a binding.
      const isBinding = request.operation === 'CREATE' || (isMarked(object) && !isMarked(old))
      return isBinding ? requireBind(parts, request, object as APIBinding) : undefined
    },
  }
}

function isMarked(object: KubeObject | undefined): boolean {
  return object?.metadata.labels?.[inheritLabel] === 'true'
}

/**
 * Bounds of one logical cluster: the server keeps the claims of all exports and bindings in memory, and a change of a
 * definition concerns each export.
 */
const maxObjects: Readonly<Record<string, number>> = { apibindings: 100, apiexports: 100, apiexportendpointslices: 200 }
const maxSpecCharacters = 16 * 1024

function requireBounds(
  { definition: { info, storageKey }, context, operation }: AdmissionRequest,
  object: KubeObject,
): void {
  const most = maxObjects[info.resource]
  if (most === undefined) return
  const name = object.metadata.name ?? ''
  if (operation === 'CREATE' && context.objects.list({ resource: storageKey }).length >= most)
    throw forbidden(info, name, `a logical cluster may have at most ${most} ${info.resource}`)
  if (JSON.stringify(object['spec'] ?? {}).length > maxSpecCharacters)
    throw forbidden(info, name, `the spec may have at most ${maxSpecCharacters} characters`)
}

/** Throws 403 for revisions and statuses, which the server derives and other logical clusters rely on. */
function requireOwnWriter({ definition: { info }, subresource, name }: AdmissionRequest): void {
  if (info.resource === 'apiexportrevisions') throw forbidden(info, name, 'the server writes the revisions of exports')
  if (subresource === 'status') throw forbidden(info, name, 'the server writes the status of this kind')
}

/** Throws 403 if the user may not bind the export. Whether the export exists is not told then. */
async function requireBind(
  { authorizer, directory }: SharedApiParts,
  { definition: { info }, context, signal }: AdmissionRequest,
  { metadata, spec }: APIBinding,
): Promise<void> {
  const { user, cluster: consumer, work } = context
  const { path = '', name = '' } = spec?.reference?.export ?? {}
  const providerName = path === '' ? consumer.name : tryClusterName(clusterNameOf(path))
  const provider = providerName === undefined ? undefined : directory?.byName(providerName)
  const { group, version, resource } = apiExports
  const attributes = { verb: 'bind', resource: { group, version, resource, subresource: '', namespace: '', name } }
  for (const identity of provider === undefined ? [] : identitiesIn(provider, user, consumer)) {
    const where = { cluster: provider as LogicalCluster, work, signal }
    if (!(await authorizer.authorize(identity, attributes, where)).allowed) continue
    if (provider?.deleting !== true) return
    throw forbidden(info, metadata.name, `logical cluster "${providerName ?? ''}" is being deleted`)
  }
  throw forbidden(
    info,
    metadata.name,
    `no permission to bind APIExport "${name}" of logical cluster "${path}": its owner grants verb "bind" on apiexports.${sharedApisGroup}, for instance to group "${consumerGroup(consumer)}"`,
  )
}

/** The group in the provider's RBAC to which all users of a consumer belong. */
export function consumerGroup({ id }: LogicalCluster): string {
  return `system:cluster:${id}`
}

/**
 * The users as whom the provider's RBAC sees a user of a consumer. The name of a user of another logical cluster never
 * counts as such: its groups say where it comes from.
 */
function identitiesIn(provider: LogicalCluster, user: UserInfo, consumer: LogicalCluster): UserInfo[] {
  if (provider.id === consumer.id) return [user]
  const foreign: UserInfo = {
    name: `${consumerGroup(consumer)}:${user.name}`,
    groups: ['system:authenticated', consumerGroup(consumer)],
    extra: {},
    realm: { kind: 'cluster', id: provider.id },
  }
  return user.realm.kind === 'cluster' ? [foreign] : [user, foreign]
}

/** Throws Invalid for a schema that no CustomResourceDefinition could have, and for a change of it. */
function requireSchema({ definition }: AdmissionRequest, object: KubeObject, old: KubeObject | undefined): void {
  const causes = old === undefined ? schemaCauses(object) : changeCauses(object, old)
  if (causes.length === 0) return
  const { group, kind } = definition.info
  throw invalid({ group, kind }, object.metadata.name ?? '', causes)
}

function changeCauses(object: KubeObject, old: KubeObject): StatusCause[] {
  if (jsonEqual(object['spec'], old['spec'])) return []
  return [fieldInvalid('spec', null, 'is immutable: create an APIResourceSchema of another name')]
}

function schemaCauses({ metadata, ...rest }: KubeObject): StatusCause[] {
  const { group, names, scope, versions, ...more } = rest['spec'] as JsonObject
  const crd = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { ...(metadata as unknown as JsonObject) },
    spec: {
      group: group ?? '',
      names: names ?? null,
      scope: scope ?? '',
      versions: Array.isArray(versions) ? versions.map(versionOfDefinition) : [],
      ...(more['conversion'] === undefined ? {} : { conversion: more['conversion'] }),
    },
  }
  const [wrong] = typeErrors(crd, builtInSchema(definitionInfo()) ?? {})
  if (wrong !== undefined) return [fieldInvalid('spec', null, wrong)]
  return definitionCauses(crd as unknown as CustomResourceDefinition, metadata.name ?? '')
}

const versionOfDefinition = (version: JsonValue): JsonValue => {
  if (!isJsonObject(version)) return version
  const { schema, ...others } = version
  return { ...others, ...(schema === undefined ? {} : { schema: { openAPIV3Schema: schema } }) }
}

/** The errors of a schema, put as a CustomResourceDefinition whose types are right. `name`: that of the schema. */
function definitionCauses(crd: CustomResourceDefinition, name: string): StatusCause[] {
  const { names, group } = crd.spec
  const definitionName = groupResourceText({ group, resource: names.plural })
  crd.metadata.name = definitionName
  if (isSystemDefinition(definitionName)) return [fieldInvalid('spec.group', group, 'belongs to the server')]
  if (!name.endsWith(`.${definitionName}`))
    return [fieldInvalid('metadata.name', name, `must be a prefix and then .${definitionName}`)]
  defaultCrd(crd)
  return validateCrd(crd)
}

function definitionInfo(): ResourceInfo {
  const info = builtInResource({ group: 'apiextensions.k8s.io', version: 'v1', resource: 'customresourcedefinitions' })
  if (info === undefined) throw new Error('CustomResourceDefinitions are not served')
  return info
}
