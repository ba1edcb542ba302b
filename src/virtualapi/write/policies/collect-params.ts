// The parameters that a binding gives to its policy.
import type { JsonObject } from '#apimachinery/meta/index.ts'
import { parseApiVersion } from '#apimachinery/meta/index.ts'
import { selectorFromObject } from '#apimachinery/selector/index.ts'
import type { Entry } from '#store/watch-cache/index.ts'
import type { AdmissionRequest } from '#virtualapi/write/admission/admission.ts'
import type { Catalog } from '#virtualapi/catalog/catalog.ts'
import { isConverted, type Conversions } from '#virtualapi/write/conversion/conversions.ts'
import { decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { ResourceDefinition } from '#virtualapi/kinds/resources/resource-definition.ts'
import type { PolicyBase } from './compile-base.ts'
import type { Binding } from './policy-index.ts'

/**
 * The parameter objects; the policy runs once for each, and `undefined` means a run without parameters. A text is an
 * error message.
 */
export type Params = readonly (JsonObject | undefined)[] | string

const withoutParams: Params = [undefined]

/**
 * The definition of a policy's paramKind; undefined if the policy has none, an error message if there is no such kind.
 */
export function paramDefinition(
  { paramKind }: Pick<PolicyBase, 'paramKind'>,
  { context }: AdmissionRequest,
  catalog: Catalog,
): ResourceDefinition | string | undefined {
  if (paramKind === undefined) return undefined
  const { apiVersion = '', kind = '' } = paramKind
  const { group, version } = parseApiVersion(apiVersion)
  const info = catalog
    .all(context.objects)
    .find((one) => one.kind === kind && one.group === group && one.version === version)
  const found = info && catalog.find(context.objects, info)
  const sameKind = `${group === '' ? '' : `${group}/`}${version}, Kind=${kind}`
  return found ?? `failed to find resource referenced by paramKind: '${group === '' ? `/${sameKind}` : sameKind}'`
}

/** The parameters of a binding, as its paramRef selects them. */
export async function collectParams(
  definition: ResourceDefinition | undefined,
  { spec }: Binding,
  { context, namespace: own, signal }: AdmissionRequest,
  conversions: Conversions,
): Promise<Params> {
  const { paramRef } = spec
  if (definition === undefined || paramRef === undefined) return withoutParams
  const { name = '', namespace = '', selector, parameterNotFoundAction } = paramRef
  const { namespaced } = definition.info
  if (!namespaced && namespace !== '') return 'paramRef.namespace must not be provided for a cluster-scoped `paramKind`'
  const within = namespaced ? namespace || own : ''
  if (namespaced && within === '')
    return 'cannot use namespaced paramRef in policy binding that matches cluster-scoped resources'
  const resource = definition.storageKey
  let found: readonly Entry[]
  if (name !== '') {
    const entry = context.objects.get(resource, within, name)
    found = entry === undefined ? [] : [entry]
  } else {
    const wanted = selectorFromObject(selector ?? {})
    const all = context.objects.list(namespaced ? { resource, namespace: within } : { resource })
    found = all.filter(({ facts }) => wanted.matches(facts.labels))
  }
  if (found.length === 0 && parameterNotFoundAction === 'Deny')
    return 'no params found for policy binding with `Deny` parameterNotFoundAction'
  if (!isConverted(definition)) return found.map((entry) => shown(entry, definition))
  const converted = await conversions.shownAll(definition, found, { cluster: context.cluster.id, signal })
  return converted.map(({ bytes }) => decodeObject(bytes) as unknown as JsonObject)
}

function shown(entry: Entry, { complete, fromStorage, info }: ResourceDefinition): JsonObject {
  const stored = decodeObject(complete?.(entry.bytes) ?? entry.bytes)
  const { group, version, kind } = info
  const object = fromStorage?.(stored) ?? stored
  return { ...(object as unknown as JsonObject), apiVersion: group === '' ? version : `${group}/${version}`, kind }
}
