// The common subset of the schemas that several members have of one kind: every value that it accepts is accepted by
// each of them, and every field that it keeps is kept by each of them, once they have set their own defaults. The result
// does not depend on the order of the members, nor on their grouping, except for maps beside objects that have both named
// and unknown fields. Each field that is lost is reported, with its cause.
import { cloneJson, isJsonObject, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { WorkBudget } from '#apimachinery/work-budget/index.ts'
import {
  conditionsOf,
  rulesOf,
  ruleText,
  setBounds,
  setConditions,
  setEnum,
  setRules,
  type Types,
} from './common-limits.ts'
import {
  isSameJson,
  namesOf,
  reportLoss,
  reportNarrowing,
  sortedUnique,
  type Part,
  type Place,
  type SchemaLoss,
} from './common-parts.ts'
import { parseStructuralSchema } from './parse-structural.ts'
import { pruneUnknown } from './prune-unknown.ts'
import { restrictCondition } from './restrict-condition.ts'
import { validate } from './validate.ts'

export type { LossKind, SchemaLoss } from './common-parts.ts'

export interface MemberSchema {
  readonly member: string
  /** Its openAPIV3Schema, which must be structural. */
  readonly schema: JsonObject
}

export type CommonSchema =
  | { readonly schema: JsonObject; readonly losses: readonly SchemaLoss[] }
  /** No object is valid under all schemas. */
  | { readonly conflict: SchemaLoss }

/** How deeply schemas may be nested. */
export const maxSchemaDepth = 100
/** Steps of the work budget for one schema at one place. */
const nodeSteps = 20
const tooMuch = 'the schemas are too large to be combined'

/**
 * The common subset; one schema is its own. Throws RequestEntityTooLarge when `work` is spent or the schemas are nested
 * too deeply.
 */
export function commonSchema(
  schemas: readonly MemberSchema[],
  { work = new WorkBudget() }: { readonly work?: WorkBudget } = {},
): CommonSchema {
  const losses: SchemaLoss[] = []
  const parts = schemas.map(({ member, schema }) => ({ member, node: schema }))
  const schema = combine(parts, { path: '', depth: 0, isResource: true, words: new Set(), losses, work })
  if (schema !== undefined) return { schema, losses: losses.toSorted(byPath) }
  const cause = losses.findLast(({ kind }) => kind === 'dropped')
  return { conflict: cause ?? { path: '.', kind: 'dropped', what: 'has no common schema', members: namesOf(parts) } }
}

/** Whether objects and lists in the value are nested more than `levels` deep. Needs no stack. */
export function isDeeperThan(value: unknown, levels: number): boolean {
  let level: unknown[] = [value]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > levels) return true
    level = level.flatMap((one): unknown[] => (typeof one === 'object' && one !== null ? Object.values(one) : []))
  }
  return false
}

function byPath(a: SchemaLoss, b: SchemaLoss): number {
  return a.path < b.path ? -1 : a.path > b.path ? 1 : 0
}

/** Any value but null, all of whose fields are kept: a null in a field with a name is removed. */
const anyValue: JsonObject = { 'x-kubernetes-preserve-unknown-fields': true }
/** A value of which the schema does not say anything. */
const unknownValue: JsonObject = { ...anyValue, nullable: true }
/** Any value, none of whose fields are known. */
const bareValue: JsonObject = {}

function isAnyValue(node: JsonObject): boolean {
  return isSameJson(node, anyValue) || isSameJson(node, unknownValue)
}

/** The common schema of the values at a place; undefined if no value is valid under all. */
function combine(given: readonly Part[], place: Place): JsonObject | undefined {
  place.work.spend(given.length * nodeSteps, tooMuch)
  if (place.depth > maxSchemaDepth)
    place.work.spend(Infinity, `the schemas are nested more than ${maxSchemaDepth} deep`)
  const limiting = given.filter(({ node }) => !isAnyValue(node))
  const parts = limiting.length === 0 ? given : limiting
  const [first] = parts
  if (first === undefined) return undefined
  const same = withoutNullable(first.node)
  if (parts.every(({ node }) => isSameJson(withoutNullable(node), same)))
    return isNullable(given, place) ? { ...same, nullable: true } : same
  const types = commonTypes(parts, place)
  if (types === undefined) return undefined
  const result: JsonObject = {}
  setTexts(result, parts)
  setTypes(result, types, parts, place)
  if (isNullable(given, place)) result['nullable'] = true
  if (!setEnum(result, parts, place) || !setBounds(result, types, parts, place)) return undefined
  const inside = { ...place, words: new Set([...place.words, ...wordsOf(parts)]) }
  const forbidden = concerns(types, 'object') ? setFields(result, parts, inside) : []
  if (forbidden === undefined) return undefined
  if (concerns(types, 'array') && !setList(result, types, parts, inside)) return undefined
  if (!setRestricted(result, types, parts, place)) return undefined
  setRules(result, parts, { more: forbidden.map(forbiddingRule), place })
  setDefault(result, parts, place)
  return result
}

function concerns(types: Types, type: string): boolean {
  return types === 'any' || types.has(type)
}

function setTexts(result: JsonObject, parts: readonly Part[]): void {
  const texts = parts.map(({ node }) => node['description']).filter((text) => typeof text === 'string')
  const [description] = texts.sort()
  if (description !== undefined) result['description'] = description
}

function typesOf({ type, 'x-kubernetes-int-or-string': intOrString }: JsonObject): readonly string[] | undefined {
  if (intOrString === true) return ['integer', 'string']
  return typeof type === 'string' && type !== '' ? [type] : undefined
}

/** Undefined if there is none. */
function commonTypes(parts: readonly Part[], place: Place): Types | undefined {
  let types: ReadonlySet<string> | undefined
  for (const { node } of parts) {
    const own = typesOf(node)
    if (own !== undefined)
      types = new Set(types === undefined ? own : [...types].flatMap((one) => narrowType(one, own)))
  }
  if (types === undefined) return 'any'
  if (types.size > 0) return types
  const told = parts.map(({ member, node }) => `${typesOf(node)?.join(' or ') ?? 'any'} in ${member}`)
  reportLoss(place, 'dropped', `has different types: ${told.slice(0, 5).join(', ')}`, namesOf(parts))
  return undefined
}

function narrowType(type: string, own: readonly string[]): string[] {
  if (own.includes(type)) return [type]
  const isWhole = (type === 'integer' && own.includes('number')) || (type === 'number' && own.includes('integer'))
  return isWhole ? ['integer'] : []
}

function setTypes(result: JsonObject, types: Types, parts: readonly Part[], place: Place): void {
  if (types !== 'any') {
    const [type = ''] = types
    if (types.size > 1) result['x-kubernetes-int-or-string'] = true
    else result['type'] = type
    const narrow = parts.filter(({ node }) => typesOf(node)?.length === types.size && typesOf(node)?.[0] === type)
    if (types.size === 1) reportNarrowing(place, `must be of type ${type}`, narrow, parts)
  }
}

function isNullable(parts: readonly Part[], place: Place): boolean {
  const strict = parts.filter(({ node }) => node['nullable'] !== true)
  const said = parts.filter(({ node }) => !isAnyValue(node))
  if (strict.length > 0 && said.some(({ node }) => node['nullable'] === true))
    reportNarrowing(place, 'takes no null', strict, parts)
  return strict.length === 0
}

function withoutNullable(node: JsonObject): JsonObject {
  if (node['nullable'] === undefined) return node
  const { nullable: _nullable, ...rest } = node
  return rest
}

/** The words of the rules of these parts. */
function wordsOf(parts: readonly Part[]): string[] {
  return parts.flatMap(({ node }) =>
    rulesOf(node).flatMap((rule) => {
      const texts = isJsonObject(rule) ? ['rule', 'messageExpression', 'fieldPath'].map((name) => rule[name]) : []
      return texts.flatMap((text) => (typeof text === 'string' ? (text.match(/\w+/g) ?? []) : []))
    }),
  )
}

/** The name of a field in a rule. */
function nameInRule(key: string): string {
  const escaped = key
    .replaceAll('__', '__underscores__')
    .replaceAll('.', '__dot__')
    .replaceAll('-', '__dash__')
    .replaceAll('/', '__slash__')
  return reservedWords.has(escaped) ? `__${escaped}__` : escaped
}

const reservedWords: ReadonlySet<string> = new Set(
  'true false null in as break const continue else for function if import let loop package namespace return var void while'.split(
    ' ',
  ),
)

/** A field that rules read must stay known to their compiler; no object may have it. */
function forbiddingRule(key: string): JsonObject {
  return { rule: `!has(self.${nameInRule(key)})`, message: `${key} is not known to all member clusters` }
}

/** The schema by which the rules are compiled and their cost is estimated: of those that have the field. */
function forbiddenField(key: string, parts: readonly Part[], place: Place): JsonObject {
  const known = parts.flatMap(({ member, node }) => {
    const field = propertiesOf(node)[key]
    return isJsonObject(field) ? [{ member, node: field }] : []
  })
  const found = combineInside(`${place.path}.${key}`, known, { ...place, losses: [] })
  if (found === undefined) return { 'x-kubernetes-int-or-string': true }
  const { default: _default, ...field } = found
  return field
}

function forbids({ node }: Part, key: string): boolean {
  const { rule } = forbiddingRule(key)
  return rulesOf(node).some((one) => ruleText(one) === rule)
}

/** The fields of objects. Returns the forbidden ones; undefined if no object is valid under all schemas. */
function setFields(result: JsonObject, parts: readonly Part[], place: Place): string[] | undefined {
  const { isResource } = place
  setFlags(result, parts)
  const embedded = parts.filter(({ node }) => node['x-kubernetes-embedded-resource'] === true)
  const plain = parts.filter(({ node }) => !embedded.some((part) => part.node === node) && !keepsUnknown(node))
  if (embedded.length > 0 && plain.length > 0) {
    reportLoss(place, 'dropped', 'is a whole object in some members only', namesOf(embedded))
    return undefined
  }
  const isWhole = isResource || embedded.length > 0
  const named = new Set(parts.flatMap(({ node }) => Object.keys(propertiesOf(node))))
  const required = new Set(parts.flatMap(({ node }) => requiredOf(node)))
  place.work.spend(parts.length * (named.size + required.size), tooMuch)
  const properties: JsonObject = Object.create(null) as JsonObject
  const forbidden: string[] = []
  let isLost = false
  for (const key of new Set([...named, ...required])) {
    const field = combineField(key, parts, { ...place, isResource: isWhole })
    if (field !== undefined) {
      if (named.has(key)) properties[key] = field
      continue
    }
    isLost = true
    const needing = parts.filter((part) => needs(part, key))
    if (needing.length > 0) {
      const path = `${place.path}.${key}`
      const cause = place.losses.findLast((loss) => loss.path === path)
      reportLoss({ ...place, path }, 'dropped', `is required, and ${cause?.what ?? 'is not known'}`, [
        ...namesOf(needing),
        ...(cause?.members ?? []),
      ])
      return undefined
    }
    if (place.words.has(nameInRule(key)) && parts.some((part) => fieldIn(part, key, isWhole) !== undefined)) {
      forbidden.push(key)
      properties[key] = forbiddenField(key, parts, place)
    }
  }
  if (!setOthers(result, parts, { named, isLost, place })) return undefined
  if (Object.keys(properties).length > 0) result['properties'] = { ...properties }
  setRequired(result, parts, { properties, forbidden, required, isWhole })
  return forbidden
}

function setFlags(result: JsonObject, parts: readonly Part[]): void {
  for (const name of ['x-kubernetes-embedded-resource'] as const)
    if (parts.some(({ node }) => node[name] === true)) result[name] = true
  const types = parts.map(({ node }) => node['x-kubernetes-map-type']).filter((type) => type !== undefined)
  if (types.length > 0) result['x-kubernetes-map-type'] = types.includes('atomic') ? 'atomic' : 'granular'
}

function propertiesOf(node: JsonObject): JsonObject {
  return isJsonObject(node['properties']) ? node['properties'] : {}
}

function requiredOf(node: JsonObject): string[] {
  return strings(node['required'])
}

function strings(value: JsonValue | undefined): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : []
}

function keepsUnknown(node: JsonObject): boolean {
  return node['x-kubernetes-preserve-unknown-fields'] === true
}

/** Whether an object without the field is invalid: a field with a default is never absent. */
function needs({ node }: Part, key: string): boolean {
  const properties = propertiesOf(node)
  const field = Object.hasOwn(properties, key) ? properties[key] : undefined
  return requiredOf(node).includes(key) && !(isJsonObject(field) && field['default'] !== undefined)
}

/** The schema of a field in one member; undefined if the member does not know the field. */
function fieldIn(part: Part, key: string, isWhole: boolean): JsonObject | undefined {
  if (forbids(part, key)) return undefined
  const properties = propertiesOf(part.node)
  const field = Object.hasOwn(properties, key) ? properties[key] : undefined
  const isMetadata = isWhole && key === 'metadata'
  if (isJsonObject(field)) return isMetadata ? { ...field, ...anyValue } : field
  if (isWhole && (key === 'apiVersion' || key === 'kind')) return { type: 'string' }
  return isMetadata ? anyValue : otherIn(part.node)
}

/** The schema of the fields that have no name in the schema; undefined if they are not kept. */
function otherIn(node: JsonObject): JsonObject | undefined {
  const other = node['additionalProperties']
  if (isJsonObject(other)) return other
  if (other === true) return bareValue
  return keepsUnknown(node) ? unknownValue : undefined
}

/** The common schema of a field; undefined, and reported, if there is none. */
function combineField(key: string, parts: readonly Part[], place: Place): JsonObject | undefined {
  const path = `${place.path}.${key}`
  const fields = parts.map((part) => ({ member: part.member, node: fieldIn(part, key, place.isResource) }))
  const lacking = fields.filter(({ node }) => node === undefined)
  if (lacking.length > 0) {
    const isKnown = lacking.length < fields.length
    reportLoss({ ...place, path }, 'dropped', 'is not known', isKnown ? lacking.map(({ member }) => member) : [])
    return undefined
  }
  const found = combineInside(path, fields as Part[], place)
  if (found === undefined || !(place.isResource && key === 'metadata')) return found
  const { 'x-kubernetes-preserve-unknown-fields': _kept, ...metadata } = found
  return { type: 'object', ...metadata }
}

/** Combines what is below a place. If nothing is common there, the losses below become the loss of the whole. */
function combineInside(path: string, parts: readonly Part[], place: Place): JsonObject | undefined {
  const losses: SchemaLoss[] = []
  const isResource = parts.some(({ node }) => node['x-kubernetes-embedded-resource'] === true)
  const found = combine(parts, { ...place, path, depth: place.depth + 1, isResource, losses })
  if (found === undefined) {
    const cause = losses.findLast(({ kind }) => kind === 'dropped')
    const inside = cause === undefined || cause.path === path ? '' : `${cause.path} `
    reportLoss({ ...place, path }, 'dropped', `${inside}${cause?.what ?? 'has no common schema'}`, cause?.members ?? [])
  } else place.losses.push(...losses)
  return found
}

interface Others {
  /** The fields that some members name. */
  readonly named: ReadonlySet<string>
  /** Whether one of them is not in the common schema. */
  readonly isLost: boolean
  readonly place: Place
}

/** The schema of fields without a name. False if a field cannot be kept out. */
function setOthers(result: JsonObject, parts: readonly Part[], { named, isLost, place }: Others): boolean {
  const others = parts.map(({ member, node }) => ({ member, node: otherIn(node) }))
  const lacking = others.filter(({ node }) => node === undefined).map(({ member }) => member)
  const path = `${place.path}.*`
  if (lacking.length > 0) {
    const isUnknownLost = parts.some(({ node }) => keepsUnknown(node))
    if (isUnknownLost) reportLoss(place, 'dropped', 'keeps no unknown fields', lacking)
    else if (lacking.length < parts.length) reportLoss({ ...place, path }, 'dropped', 'is not known', lacking)
    return true
  }
  if (others.every(({ node }) => node !== undefined && isAnyValue(node))) {
    if (isLost) return false
    result['x-kubernetes-preserve-unknown-fields'] = true
    return true
  }
  if (named.size > 0) {
    const naming = parts.filter(({ node }) => Object.keys(propertiesOf(node)).length > 0)
    reportLoss({ ...place, path }, 'dropped', 'has fields with names only', namesOf(naming))
    return true
  }
  const found = combineInside(path, others as Part[], place)
  if (found === undefined) return true
  result['additionalProperties'] = found
  if (parts.every(({ node }) => keepsUnknown(node))) result['x-kubernetes-preserve-unknown-fields'] = true
  return true
}

interface RequiredFields {
  readonly properties: JsonObject
  readonly forbidden: readonly string[]
  readonly required: ReadonlySet<string>
  readonly isWhole: boolean
}

function setRequired(
  result: JsonObject,
  parts: readonly Part[],
  { properties, forbidden, required, isWhole }: RequiredFields,
): void {
  const isKept = (key: string): boolean => {
    if (forbidden.includes(key)) return false
    const field = Object.hasOwn(properties, key) ? properties[key] : undefined
    if (isJsonObject(field) && field['default'] !== undefined) return true
    const isKnown = field !== undefined || otherIn(result) !== undefined
    return (isKnown || isWhole) && parts.some((part) => needs(part, key))
  }
  const kept = [...required].filter(isKept).sort()
  if (kept.length > 0) result['required'] = kept
}

/** The items of lists, and who owns them. False if no list is valid under all. */
function setList(result: JsonObject, types: Types, parts: readonly Part[], place: Place): boolean {
  if (parts.every(({ node }) => keepsUnknown(node))) result['x-kubernetes-preserve-unknown-fields'] = true
  const isList = types !== 'any'
  if (!isList && parts.every(({ node }) => node['items'] === undefined)) return true
  const items = parts.map(({ member, node }) => ({ member, node: itemsIn(node) }))
  const found = combineInside(`${place.path}[]`, items, place)
  if (found === undefined) return !isList
  result['items'] = found
  return setListType(result, found, parts, place)
}

function itemsIn(node: JsonObject): JsonObject {
  if (isJsonObject(node['items'])) return node['items']
  return keepsUnknown(node) || typesOf(node) === undefined ? unknownValue : bareValue
}

/** The strictest of the types: lists without repetitions are valid lists, whoever owns their items. */
function setListType(result: JsonObject, items: JsonObject, parts: readonly Part[], place: Place): boolean {
  const typeOf = ({ node }: Part): JsonValue | undefined => node['x-kubernetes-list-type']
  const known = new Set(parts.map(typeOf))
  const maps = parts.filter((part) => typeOf(part) === 'map')
  if (maps.length > 0 && known.has('set')) {
    reportLoss(place, 'dropped', 'is a set in some members and a map in others', namesOf(maps))
    return false
  }
  const [type] = ['map', 'set', 'atomic'].filter((one) => known.has(one))
  if (type !== undefined) result['x-kubernetes-list-type'] = type
  if (type !== 'atomic' && type !== undefined) {
    const strict = parts.filter((part) => typeOf(part) === type)
    reportNarrowing(place, `is a list of type ${type}`, strict, parts)
  }
  return maps.length === 0 || setListKeys(result, items, maps, place)
}

/** Items that differ in some of the keys differ in all of the keys together. */
function setListKeys(result: JsonObject, items: JsonObject, maps: readonly Part[], place: Place): boolean {
  const lists = maps.map(({ node }) => strings(node['x-kubernetes-list-map-keys']))
  const [first = []] = lists
  const shared = first.filter((key) => lists.every((keys) => keys.includes(key)))
  const properties = propertiesOf(items)
  const isKnown = (key: string): boolean => Object.hasOwn(properties, key) && !forbids({ member: '', node: items }, key)
  if (shared.length === 0 || !shared.every(isKnown)) {
    reportLoss(place, 'dropped', 'has items with different keys', namesOf(maps))
    return false
  }
  result['x-kubernetes-list-map-keys'] = lists.every((keys) => isSameJson(keys, first)) ? first : sortedUnique(shared)
  const missing = shared.filter((key) => {
    const field = properties[key]
    return !requiredOf(items).includes(key) && !(isJsonObject(field) && field['default'] !== undefined)
  })
  if (missing.length > 0) result['items'] = { ...items, required: [...requiredOf(items), ...missing].sort() }
  return true
}

/** The conditions of all, without fields that are not in the common schema. False if one of them cannot hold. */
function setRestricted(result: JsonObject, types: Types, parts: readonly Part[], place: Place): boolean {
  const kept: JsonObject[] = []
  for (const condition of conditionsOf(types, parts, place)) {
    const found = restrictCondition(condition, result, place.isResource)
    if (found === false) {
      reportLoss(place, 'dropped', 'has a condition on fields that are not known to all', namesOf(parts))
      return false
    }
    if (found !== true) kept.push(found)
  }
  setConditions(result, sortedUnique(kept))
  return true
}

/** The default that all have: with different ones, the same object would mean different things in different members. */
function setDefault(result: JsonObject, parts: readonly Part[], place: Place): void {
  const values = parts.map(({ node }) => node['default'])
  if (values.every((value) => value === undefined)) return
  const schema = parseStructuralSchema(result)
  const pruned = values.map((value) => prunedBy(value, result))
  const [first] = pruned
  const isShared = first !== undefined && pruned.every((value) => isSameJson(value, first))
  if (isShared && validate(first, schema, { work: place.work }).length === 0) result['default'] = first
  else {
    const others = parts.filter((_, index) => !isSameJson(pruned[index], first))
    reportLoss(place, 'narrowed', 'has no common default', namesOf(others.length === 0 ? parts : others))
  }
}

function prunedBy(value: JsonValue | undefined, schema: JsonObject): JsonValue | undefined {
  if (value === undefined) return undefined
  const holder: JsonObject = { value: cloneJson(value) }
  const parsed = parseStructuralSchema({ type: 'object', properties: { value: schema } })
  pruneUnknown(holder, parsed, { isResourceRoot: false })
  return holder['value']
}
