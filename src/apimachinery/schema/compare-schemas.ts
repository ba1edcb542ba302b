// Differences between two schemas of one kind that harm objects which the first schema accepts. Sound, not complete:
// without a difference every such object is valid under the second schema and keeps all its fields; a difference may
// concern no object that exists.
import type { JsonValue } from '#apimachinery/meta/index.ts'
import { formatCheck } from './formats.ts'
import { fieldSchemaOf, propertyOf } from './property.ts'
import type { SchemaNode } from './schema-node.ts'

/** `refused`: the server may refuse the object; `dropped`: a field may be lost; `changed`: it may mean something else. */
export type Harm = 'refused' | 'dropped' | 'changed'

export interface SchemaDifference {
  /** The field, such as `.spec.ports[].name`; `*` stands for any key of a map. */
  readonly path: string
  readonly harm: Harm
  /** What is different, without the path: `is required`. */
  readonly what: string
}

/** All harmful differences from `before` to `after`, in the order of the fields. */
export function compareSchemas(before: SchemaNode, after: SchemaNode): SchemaDifference[] {
  const found: SchemaDifference[] = []
  compare(before, after, { path: '', found })
  return found
}

interface Place {
  readonly path: string
  readonly found: SchemaDifference[]
}

function report({ path, found }: Place, harm: Harm, what: string): void {
  found.push({ path: path === '' ? '.' : path, harm, what })
}

function compare(before: SchemaNode, after: SchemaNode, place: Place): void {
  if (isSame(before, after)) return
  compareTypes(before, after, place)
  compareBounds(before, after, place)
  compareTexts(before, after, place)
  compareConditions(before, after, place)
  compareLists(before, after, place)
  compareFields(before, after, place)
  if (!isSame(before.default, after.default) && after.default !== undefined)
    report(place, 'changed', `has ${before.default === undefined ? 'a' : 'another'} default: ${shown(after.default)}`)
}

function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}

function compareTypes(before: SchemaNode, after: SchemaNode, place: Place): void {
  const [was, is] = [typesOf(before), typesOf(after)]
  const lost = is === 'any' ? [] : was === 'any' ? ['values of other types'] : was.filter((type) => !accepts(is, type))
  if (lost.length > 0) report(place, 'refused', `takes no ${lost.join(' and no ')} any more`)
  if (before.nullable === true && after.nullable !== true) report(place, 'refused', 'takes no null any more')
  if (after.embeddedResource === true && before.embeddedResource !== true)
    report(place, 'refused', 'must be a whole object with apiVersion, kind and metadata')
}

function typesOf({ type, intOrString }: SchemaNode): readonly string[] | 'any' {
  if (intOrString === true) return ['integer', 'string']
  return type === undefined ? 'any' : [type]
}

function accepts(types: readonly string[], type: string): boolean {
  return types.includes(type) || (type === 'integer' && types.includes('number'))
}

const lowerBounds = {
  minimum: 'at least',
  minLength: 'at least',
  minItems: 'at least',
  minProperties: 'at least',
} as const
const upperBounds = { maximum: 'at most', maxLength: 'at most', maxItems: 'at most', maxProperties: 'at most' } as const
const unitOf: Readonly<Record<string, string>> = {
  minLength: ' characters',
  maxLength: ' characters',
  minItems: ' items',
  maxItems: ' items',
  minProperties: ' fields',
  maxProperties: ' fields',
}

function compareBounds(before: SchemaNode, after: SchemaNode, place: Place): void {
  for (const [name, word] of Object.entries({ ...lowerBounds, ...upperBounds })) {
    const [was, is] = [numberOf(before, name), numberOf(after, name)]
    const isTighter = is !== undefined && (was === undefined || (name in lowerBounds ? is > was : is < was))
    if (isTighter) report(place, 'refused', `must have ${word} ${is}${unitOf[name] ?? ''}`)
  }
  if (after.exclusiveMinimum === true && before.exclusiveMinimum !== true && before.minimum === after.minimum)
    report(place, 'refused', `must be greater than ${after.minimum}`)
  if (after.exclusiveMaximum === true && before.exclusiveMaximum !== true && before.maximum === after.maximum)
    report(place, 'refused', `must be less than ${after.maximum}`)
  if (after.multipleOf !== undefined && !isMultiple(before.multipleOf, after.multipleOf))
    report(place, 'refused', `must be a multiple of ${after.multipleOf}`)
}

function numberOf(schema: SchemaNode, name: string): number | undefined {
  return (schema as Readonly<Record<string, unknown>>)[name] as number | undefined
}

function isMultiple(of: number | undefined, by: number): boolean {
  return of !== undefined && Number.isInteger(of / by)
}

/** Integers are checked against these two by their range. */
const integerFormats: readonly (string | undefined)[] = ['int32', 'int64']

function compareTexts(before: SchemaNode, after: SchemaNode, place: Place): void {
  if (after.pattern !== undefined && after.pattern !== before.pattern)
    report(place, 'refused', `must match ${after.pattern}`)
  const { format } = after
  if (format === undefined || format === before.format) return
  const isNarrower = format === 'int32' || (!integerFormats.includes(format) && formatCheck(format) !== undefined)
  if (isNarrower) report(place, 'refused', `must have format ${format}`)
}

function compareConditions(before: SchemaNode, after: SchemaNode, place: Place): void {
  const { enum: values } = after
  if (values !== undefined) {
    const known = new Set(values.map((value) => JSON.stringify(value)))
    const lost = before.enum?.filter((value) => !known.has(JSON.stringify(value)))
    if (lost === undefined) report(place, 'refused', `takes ${values.map(shown).join(', ')} only`)
    else if (lost.length > 0) report(place, 'refused', `takes ${lost.map(shown).join(', ')} no more`)
  }
  for (const name of ['allOf', 'anyOf', 'oneOf', 'not'] as const)
    if (after[name] !== undefined && !isSame(before[name], after[name]))
      report(place, 'refused', `has another condition ${name}`)
  const rules = new Set(before.validations?.map(ruleOf))
  for (const validation of after.validations ?? [])
    if (!rules.has(ruleOf(validation))) report(place, 'refused', `has another rule: ${ruleOf(validation)}`)
}

/** The expression of a validation rule: its message does not decide. */
function ruleOf(validation: JsonValue): string {
  const { rule } = validation as { readonly rule?: JsonValue }
  return typeof rule === 'string' ? rule : JSON.stringify(validation)
}

function shown(value: JsonValue): string {
  const text = JSON.stringify(value)
  return text.length > 60 ? `${text.slice(0, 60)} ...` : text
}

function compareLists(before: SchemaNode, after: SchemaNode, place: Place): void {
  if (after.uniqueItems === true && before.uniqueItems !== true) report(place, 'refused', 'must have no item twice')
  const keys = after.listMapKeys?.join(', ') ?? ''
  if (after.listType !== before.listType || keys !== (before.listMapKeys?.join(', ') ?? '')) {
    if (after.listType === 'set') report(place, 'refused', 'must have no item twice')
    else if (after.listType === 'map') report(place, 'refused', `must have no two items with the same ${keys}`)
    else report(place, 'changed', 'is owned as a whole in server-side apply')
  }
  if ((after.mapType ?? 'granular') !== (before.mapType ?? 'granular'))
    report(place, 'changed', `has map type ${after.mapType ?? 'granular'} in server-side apply`)
  if (after.items === undefined) return
  const inside = { ...place, path: `${place.path}[]` }
  if (before.items !== undefined) compare(before.items, after.items, inside)
  else if (typesOf(before) === 'any') report(inside, 'refused', 'has a schema now')
}

function compareFields(before: SchemaNode, after: SchemaNode, place: Place): void {
  const at = (key: string): Place => ({ ...place, path: `${place.path}.${key}` })
  for (const key of after.required ?? [])
    if (before.required?.includes(key) !== true && propertyOf(after, key)?.default === undefined)
      report(at(key), 'refused', 'is required')
  for (const [key, field] of Object.entries(before.properties ?? {})) {
    const now = fieldSchemaOf(after, key)
    if (now !== undefined) compare(field, now, at(key))
    else if (after.preserveUnknownFields !== true) report(at(key), 'dropped', 'does not exist any more')
  }
  compareOtherFields(before, after, place)
}

/** Fields that `before` does not name: the values of a map, and unknown fields that were kept. */
function compareOtherFields(before: SchemaNode, after: SchemaNode, place: Place): void {
  const at = (key: string): Place => ({ ...place, path: `${place.path}.${key}` })
  const [was, is] = [before.additionalProperties, after.additionalProperties]
  const added = Object.entries(after.properties ?? {}).filter(([key]) => propertyOf(before, key) === undefined)
  if (typeof was === 'object') {
    for (const [key, field] of added) compare(was, field, at(key))
    if (typeof is === 'object') compare(was, is, at('*'))
    else if (after.preserveUnknownFields !== true) report(at('*'), 'dropped', 'does not exist any more')
  }
  if (before.preserveUnknownFields !== true) return
  for (const [key] of added) report(at(key), 'refused', 'has a schema now')
  if (after.preserveUnknownFields !== true) report(place, 'dropped', 'keeps no unknown fields any more')
  else if (typeof is === 'object' && typeof was !== 'object') report(at('*'), 'refused', 'has a schema now')
}
