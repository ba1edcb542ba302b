// The common subset of the CustomResourceDefinitions that several members have under one name. Pure.
import { compareText, isJsonObject, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { WorkBudget } from '#apimachinery/work-budget/index.ts'
import { canonicalText, isSameJson } from './common-parts.ts'
import { commonSchema, type SchemaLoss } from './common-schema.ts'

export interface MemberDefinition {
  readonly member: string
  /** The spec of its CustomResourceDefinition. */
  readonly spec: JsonObject
}

export interface DefinitionLoss extends SchemaLoss {
  /** The version of the definition; absent if the loss concerns all. */
  readonly version?: string
}

export type CommonDefinition =
  | {
      readonly spec: JsonObject
      /** The version in which objects are stored. */
      readonly storage: string
      readonly losses: readonly DefinitionLoss[]
    }
  /** The members have no version in common, or are about different things. */
  | { readonly conflict: DefinitionLoss }

/**
 * The definition that all members share. Throws RequestEntityTooLarge when `work` is spent. Where a member converts by
 * a webhook, which only its own API server can call, one version is left.
 */
export function commonDefinition(
  definitions: readonly MemberDefinition[],
  { work = new WorkBudget() }: { readonly work?: WorkBudget } = {},
): CommonDefinition {
  const members = definitions.map(({ member }) => member)
  const [first] = definitions
  if (first === undefined) throw new Error('no definition is given')
  for (const path of ['group', 'scope', 'names.plural', 'names.kind', 'names.listKind']) {
    const values = definitions.map(({ member, spec }) => ({ member, value: identityOf(spec, path) }))
    const [one] = values
    if (values.some(({ value }) => value !== one?.value)) {
      const told = values.slice(0, 5).map(({ member, value }) => `${value} in ${member}`)
      return { conflict: { path: `spec.${path}`, kind: 'dropped', what: `is ${told.join(', ')}`, members } }
    }
  }
  const losses: DefinitionLoss[] = []
  const versions = commonVersions(definitions, losses, work)
  const storage = storageOf(definitions, versions)
  if (storage === undefined) {
    const cause = losses.findLast(({ path }) => path === '.')
    return { conflict: cause ?? { path: '.', kind: 'dropped', what: 'has no version in common', members } }
  }
  const converts = definitions.some(({ spec }) => fieldAt(spec, 'conversion.strategy') === 'Webhook')
  const kept = converts ? versions.filter(({ name }) => name === storage) : versions
  const spec: JsonObject = {
    group: first.spec['group'] ?? '',
    scope: first.spec['scope'] ?? '',
    names: commonNames(definitions.map(({ spec }) => (isJsonObject(spec['names']) ? spec['names'] : {}))),
    versions: kept.map(({ name, version }) => ({ ...version, name, served: true, storage: name === storage })),
  }
  const names = new Set<string | undefined>([undefined, ...kept.map(({ name }) => name)])
  return { spec, storage, losses: losses.filter(({ version, path }) => path === '.' || names.has(version)) }
}

function identityOf(spec: JsonObject, path: string): string {
  const value = fieldAt(spec, path)
  if (path === 'names.listKind' && value === undefined) return `${identityOf(spec, 'names.kind')}List`
  return typeof value === 'string' ? value : ''
}

function fieldAt(value: JsonValue | undefined, path: string): JsonValue | undefined {
  return path.split('.').reduce<JsonValue | undefined>((at, key) => (isJsonObject(at) ? at[key] : undefined), value)
}

function commonNames(all: readonly JsonObject[]): JsonObject {
  const [first = {}] = all
  const result: JsonObject = { plural: first['plural'] ?? '', kind: first['kind'] ?? '' }
  for (const name of ['listKind', 'singular'])
    if (first[name] !== undefined && all.every((names) => names[name] === first[name])) result[name] = first[name]
  for (const name of ['shortNames', 'categories']) {
    const lists = all.map((names) => (Array.isArray(names[name]) ? names[name] : []))
    const shared = (lists[0] ?? []).filter((item) => lists.every((list) => list.includes(item)))
    if (shared.length > 0) result[name] = shared
  }
  return result
}

interface NamedVersion {
  readonly name: string
  readonly version: JsonObject
}

/** The versions that all serve and that have a common schema, the most mature first. */
function commonVersions(
  definitions: readonly MemberDefinition[],
  losses: DefinitionLoss[],
  work: WorkBudget,
): NamedVersion[] {
  const served = definitions.map(({ member, spec }) => ({ member, versions: servedVersions(spec) }))
  const names = [...new Set(served.flatMap(({ versions }) => [...versions.keys()]))]
  return names.sort(byPriority).flatMap((version) => {
    const lacking = served.filter(({ versions }) => !versions.has(version)).map(({ member }) => member)
    if (lacking.length > 0) {
      losses.push({ version, path: '.', kind: 'dropped', what: 'is not served', members: lacking })
      return []
    }
    const parts = served.map(({ member, versions }) => ({ member, version: versions.get(version) ?? {} }))
    const found = commonVersion(parts, { name: version, losses, work })
    return found === undefined ? [] : [{ name: version, version: found }]
  })
}

function servedVersions(spec: JsonObject): Map<string, JsonObject> {
  const versions = Array.isArray(spec['versions']) ? spec['versions'].filter(isJsonObject) : []
  return new Map(
    versions.flatMap((version) =>
      version['served'] === true && typeof version['name'] === 'string' ? [[version['name'], version] as const] : [],
    ),
  )
}

interface VersionOf {
  readonly member: string
  readonly version: JsonObject
}

/** The schema of a version without one: it keeps everything. */
const openSchema: JsonObject = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }

function commonVersion(
  parts: readonly VersionOf[],
  { name, losses, work }: { readonly name: string; readonly losses: DefinitionLoss[]; readonly work: WorkBudget },
): JsonObject | undefined {
  const schemas = parts.map(({ member, version }) => {
    const schema = fieldAt(version, 'schema.openAPIV3Schema')
    return { member, schema: isJsonObject(schema) ? schema : openSchema }
  })
  const found = commonSchema(schemas, { work })
  if ('conflict' in found) {
    const { path, what } = found.conflict
    losses.push({ ...found.conflict, version: name, path: '.', what: `has no common schema: ${path} ${what}` })
    return undefined
  }
  losses.push(...found.losses.map((loss) => ({ ...loss, version: name })))
  const result: JsonObject = { schema: { openAPIV3Schema: found.schema } }
  const subresources = commonSubresources(parts, name, losses)
  if (Object.keys(subresources).length > 0) result['subresources'] = subresources
  for (const list of ['additionalPrinterColumns', 'selectableFields']) {
    const shared = commonItems(parts, list, found.schema)
    if (shared.length > 0) result[list] = shared
  }
  if (parts.some(({ version }) => version['deprecated'] === true)) result['deprecated'] = true
  const warnings = parts.map(({ version }) => version['deprecationWarning']).filter((text) => typeof text === 'string')
  const [warning] = warnings.sort()
  if (warning !== undefined) result['deprecationWarning'] = warning
  return result
}

function commonSubresources(parts: readonly VersionOf[], version: string, losses: DefinitionLoss[]): JsonObject {
  const result: JsonObject = {}
  for (const name of ['status', 'scale']) {
    const all = parts.map(({ version }) => fieldAt(version, `subresources.${name}`))
    const known = all.find((one) => one !== undefined)
    if (known === undefined) continue
    const others = parts.filter((_, index) => !isSameJson(all[index], known)).map(({ member }) => member)
    if (others.length === 0) result[name] = known
    else losses.push({ version, path: `/${name}`, kind: 'dropped', what: 'does not exist', members: others })
  }
  return result
}

/** Columns and selectable fields that all have, and whose fields are in the common schema. */
function commonItems(parts: readonly VersionOf[], list: string, schema: JsonObject): JsonValue[] {
  const lists = parts.map(({ version }) => (Array.isArray(version[list]) ? version[list] : []))
  const texts = lists.map((items) => new Set(items.map(canonicalText)))
  return (lists[0] ?? []).filter((item) => {
    const path = fieldAt(item, 'jsonPath')
    const isShared = texts.every((known) => known.has(canonicalText(item)))
    return isShared && (list !== 'selectableFields' || (typeof path === 'string' && hasField(schema, path)))
  })
}

function hasField(schema: JsonObject, path: string): boolean {
  const keys = path.split('.').filter((key) => key !== '')
  return keys.reduce<JsonValue | undefined>((at, key) => fieldAt(at, `properties.${key}`), schema) !== undefined
}

/** The storage version of all, else the most mature of the common versions. */
function storageOf(definitions: readonly MemberDefinition[], versions: readonly NamedVersion[]): string | undefined {
  const stored = new Set(
    definitions.map(({ spec }) => {
      const list = Array.isArray(spec['versions']) ? spec['versions'].filter(isJsonObject) : []
      return list.find(({ storage }) => storage === true)?.['name']
    }),
  )
  const [one] = stored
  const known = versions.map(({ name }) => name)
  return stored.size === 1 && typeof one === 'string' && known.includes(one) ? one : known[0]
}

/** Kubernetes' order of versions: v2, v1, v1beta2, v1alpha1, others by name. */
function byPriority(a: string, b: string): number {
  const [left, right] = [rankOf(a), rankOf(b)]
  for (let i = 0; i < left.length; i++) if (left[i] !== right[i]) return (right[i] ?? 0) - (left[i] ?? 0)
  return compareText(a, b)
}

function rankOf(version: string): number[] {
  const { major, stage, minor } = /^v(?<major>\d+)((?<stage>alpha|beta)(?<minor>\d+))?$/.exec(version)?.groups ?? {}
  if (major === undefined) return [0, 0, 0]
  return [stage === undefined ? 3 : stage === 'beta' ? 2 : 1, Number(major), Number(minor ?? 0)]
}
