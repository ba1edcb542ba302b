// Checks that the writer of an admission policy or a binding may read the parameters that it names, because its
// expressions could reveal them. The strategies in pkg/registry/admissionregistration of kube-apiserver make the same
// check.
import type { V1ParamKind, V1ParamRef } from '@kubernetes/client-node'
import { fieldForbidden } from '#apimachinery/field/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { parseApiVersion } from '#apimachinery/meta/index.ts'
import { invalid } from '#apimachinery/status/index.ts'
import { goPrint } from '#apimachinery/text/index.ts'
import type { AdmissionPlugin, AdmissionRequest } from '#virtualapi/write/admission/admission.ts'
import type { RbacAuthorizer } from '#virtualapi/auth/authz/index.ts'
import type { Catalog } from '#virtualapi/catalog/catalog.ts'
import { decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { paramDefinition } from './collect-params.ts'

const group = 'admissionregistration.k8s.io'
const written = /^(validating|mutating)admissionpolic(ies|ybindings)$/

interface CheckDependencies {
  readonly authorizer: Pick<RbacAuthorizer, 'authorize' | 'isSuperuser'>
  readonly catalog: Catalog
}

interface PolicySpec {
  readonly paramKind?: Data<V1ParamKind>
}

interface BindingSpec {
  readonly policyName: string
  readonly paramRef?: Data<V1ParamRef>
}

/** The resource that the user must be allowed to read. An unknown part is `*`, which means all. */
interface Target {
  readonly group: string
  readonly version: string
  readonly resource: string
}

const allTargets: Target = { group: '*', version: '*', resource: '*' }

/**
 * Refuses, with 422 as upstream, policies and bindings whose parameters the user may not read. Does not change the
 * object.
 */
export function readParamsCheck(dependencies: CheckDependencies): AdmissionPlugin {
  return {
    name: 'ReadParams',
    validate(request, object, old) {
      const { definition, subresource } = request
      if (definition.info.group !== group || subresource !== '' || object === undefined) return undefined
      return checkParams(dependencies, request, object, old)
    },
  }
}

async function checkParams(
  dependencies: CheckDependencies,
  request: AdmissionRequest,
  object: KubeObject,
  old: KubeObject | undefined,
): Promise<void> {
  const { definition, context } = request
  const [, prefix, suffix] = written.exec(definition.info.resource) ?? []
  if (prefix === undefined || dependencies.authorizer.isSuperuser(context.user, context.cluster)) return
  const refusal =
    suffix === 'ies'
      ? await policyRefusal(dependencies, request, object, old)
      : await bindingRefusal(dependencies, request, object, prefix)
  if (refusal === undefined) return
  const field = suffix === 'ies' ? 'spec.paramKind' : 'spec.paramRef'
  throw invalid(definition.info, object.metadata.name ?? '', [fieldForbidden(field, refusal)])
}

async function policyRefusal(
  dependencies: CheckDependencies,
  request: AdmissionRequest,
  object: KubeObject,
  old: KubeObject | undefined,
): Promise<string | undefined> {
  const { paramKind } = object['spec'] as PolicySpec
  if (paramKind === undefined) return undefined
  const { paramKind: before } = (old?.['spec'] ?? {}) as PolicySpec
  if (before?.apiVersion === paramKind.apiVersion && before?.kind === paramKind.kind) return undefined
  const { target } = targetOf(paramKind, dependencies, request)
  if (await allowed(dependencies, request, 'get', { ...target, namespace: '*', name: '*' })) return undefined
  const { kind = '', apiVersion = '' } = paramKind
  return `user ${userText(request)} must have "get" permission on all objects of the referenced paramKind (kind=${kind}, apiVersion=${apiVersion})`
}

/** Upstream compares pointers to find out whether a paramRef has changed, so it checks on each update. */
async function bindingRefusal(
  dependencies: CheckDependencies,
  request: AdmissionRequest,
  object: KubeObject,
  prefix: string,
): Promise<string | undefined> {
  const { policyName, paramRef } = object['spec'] as BindingSpec
  if (paramRef === undefined) return undefined
  const { name = '', namespace = '' } = paramRef
  const verb = name === '' ? 'list' : 'get'
  const policy = request.context.objects.get(`${prefix}admissionpolicies.${group}`, '', policyName)
  const { paramKind } = policy === undefined ? {} : (decodeObject(policy.bytes)['spec'] as PolicySpec)
  const { target, isResolved } = targetOf(paramKind, dependencies, request)
  if (await allowed(dependencies, request, verb, { ...target, namespace, name })) return undefined
  const user = userText(request)
  const lacksAll = `to determine minimum required permissions and user ${user} does not have "${verb}" permission for all groups, versions and resources`
  if (policy === undefined) return `unable to get policy ${policyName} ${lacksAll}`
  if (paramKind !== undefined && !isResolved)
    return `unable to resolve paramKind &{${paramKind.apiVersion ?? ''} ${paramKind.kind ?? ''}} ${lacksAll}`
  // Upstream's message about mutating policies has user and verb swapped.
  const [who, what] = prefix === 'mutating' ? [verb, user] : [user, verb]
  return `user ${who} does not have "${what}" permission on the object referenced by paramRef`
}

function targetOf(
  paramKind: Data<V1ParamKind> | undefined,
  { catalog }: CheckDependencies,
  request: AdmissionRequest,
): { readonly target: Target; readonly isResolved: boolean } {
  if (paramKind === undefined) return { target: allTargets, isResolved: false }
  const found = paramDefinition({ paramKind }, request, catalog)
  const isResolved = typeof found === 'object'
  const resource = isResolved ? found.info.resource : '*'
  return { target: { ...parseApiVersion(paramKind.apiVersion ?? ''), resource }, isResolved }
}

async function allowed(
  { authorizer }: CheckDependencies,
  { context: { user, cluster, work }, signal }: AdmissionRequest,
  verb: string,
  target: Target & { readonly namespace: string; readonly name: string },
): Promise<boolean> {
  const attributes = { verb, resource: { ...target, subresource: '' } }
  return (await authorizer.authorize(user, attributes, { cluster, work, signal })).allowed
}

/** Go's %v of a pointer to user.DefaultInfo. */
function userText({ context: { user } }: AdmissionRequest): string {
  const { name, uid = '', groups, extra } = user
  const extras = Object.fromEntries(Object.entries(extra).map(([key, values]) => [key, [...values]]))
  return `&{${name} ${uid} ${goPrint([...groups])} ${goPrint(extras)}}`
}
