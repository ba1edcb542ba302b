// Checks that an openAPIV3Schema is structural: every field has a type outside of the logical combinations, and
// combinations only restrict. Reads the schema as written, because parsing drops forbidden members.
import {
  causeText,
  childPath,
  fieldForbidden,
  fieldInvalid,
  fieldRequired,
  indexPath,
  keyPath,
} from '#apimachinery/field/index.ts'
import { fieldOf, isJsonObject, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import { compilePattern } from './pattern.ts'

type Level = 'root' | 'item' | 'field'

/** The violations of the schema at `path`, sorted; empty if it is structural. */
export function structuralViolations(schema: JsonObject, path: string): StatusCause[] {
  const causes: StatusCause[] = []
  checkInvariants(schema, 'root', path, causes)
  checkComplete(schema, path, causes)
  return causes.sort((a, b) => (causeText(a) < causeText(b) ? -1 : 1))
}

function has(schema: JsonObject, name: string): boolean {
  return fieldOf(schema, name) === true
}
function text(schema: JsonObject, name: string): string {
  const value = fieldOf(schema, name)
  return typeof value === 'string' ? value : ''
}
function children(schema: JsonObject, name: string): [string, JsonObject][] {
  const map = fieldOf(schema, name)
  if (!isJsonObject(map)) return []
  return Object.entries(map).filter((entry): entry is [string, JsonObject] => isJsonObject(entry[1]))
}
function schemas(schema: JsonObject, name: string): JsonObject[] {
  const list = fieldOf(schema, name)
  return Array.isArray(list) ? list.filter(isJsonObject) : []
}
function child(schema: JsonObject, name: string): JsonObject | undefined {
  const value = fieldOf(schema, name)
  return isJsonObject(value) ? value : undefined
}

function checkInvariants(schema: JsonObject, level: Level, path: string, causes: StatusCause[]): void {
  const type = text(schema, 'type')
  const items = child(schema, 'items')
  if (type === 'array' && items === undefined) causes.push(fieldRequired(childPath(path, 'items'), 'must be specified'))
  if (items !== undefined) checkInvariants(items, 'item', childPath(path, 'items'), causes)
  for (const [name, property] of children(schema, 'properties')) {
    checkInvariants(property, 'field', keyPath(childPath(path, 'properties'), name), causes)
  }
  const additional = fieldOf(schema, 'additionalProperties')
  const additionalPath = childPath(path, 'additionalProperties')
  if (additional !== undefined) {
    if (level === 'root') causes.push(fieldForbidden(additionalPath, 'must not be used at the root'))
    if (isJsonObject(additional)) checkInvariants(additional, 'field', additionalPath, causes)
  }
  checkExtensions(schema, path, causes)
  checkValidation(schema, path, causes, {
    skipAnyOf: isIntOrStringAnyOf(fieldOf(schema, 'anyOf')),
    skipFirstAllOf: isIntOrStringAnyOf(fieldOf(schemas(schema, 'allOf')[0] ?? {}, 'anyOf')),
  })
  checkType(schema, { type, level, path }, causes)
  if (has(schema, 'x-kubernetes-embedded-resource') && additional !== undefined) {
    causes.push(fieldForbidden(additionalPath, 'must not be used if x-kubernetes-embedded-resource is set'))
  }
  checkResourceFields(schema, level, path, causes)
}

function checkType(
  schema: JsonObject,
  { type, level, path }: { type: string; level: Level; path: string },
  causes: StatusCause[],
): void {
  const field = childPath(path, 'type')
  if (has(schema, 'x-kubernetes-embedded-resource') && type !== 'object') {
    const why = 'must be object if x-kubernetes-embedded-resource is true'
    causes.push(type === '' ? fieldRequired(field, why) : fieldInvalid(field, type, why))
  } else if (
    type === '' &&
    !has(schema, 'x-kubernetes-int-or-string') &&
    !has(schema, 'x-kubernetes-preserve-unknown-fields')
  ) {
    const where = { root: 'at the root', item: 'for specified array items', field: 'for specified object fields' }[
      level
    ]
    causes.push(fieldRequired(field, `must not be empty ${where}`))
  }
  if (level === 'root' && type !== '' && type !== 'object')
    causes.push(fieldInvalid(field, type, 'must be object at the root'))
}

function checkExtensions(schema: JsonObject, path: string, causes: StatusCause[]): void {
  if (!has(schema, 'x-kubernetes-int-or-string')) return
  for (const name of ['x-kubernetes-preserve-unknown-fields', 'x-kubernetes-embedded-resource']) {
    if (has(schema, name)) {
      causes.push(fieldInvalid(childPath(path, name), true, 'must be false if x-kubernetes-int-or-string is true'))
    }
  }
}

/**
 * Kubernetes defines apiVersion, kind and metadata of a root or embedded resource: a schema may restrict only names.
 */
function checkResourceFields(schema: JsonObject, level: Level, path: string, causes: StatusCause[]): void {
  const isResource = level === 'root' || has(schema, 'x-kubernetes-embedded-resource')
  const properties = new Map(children(schema, 'properties'))
  if (isResource) {
    for (const name of ['kind', 'apiVersion']) {
      const property = properties.get(name)
      if (property === undefined || text(property, 'type') === 'string') continue
      causes.push(fieldInvalid(`${path}.properties[${name}].type`, text(property, 'type'), 'must be string'))
    }
  }
  const metadata = properties.get('metadata')
  if (metadata !== undefined) {
    const field = `${path}.properties[metadata]`
    if (isResource && text(metadata, 'type') !== 'object') {
      causes.push(fieldInvalid(`${field}.type`, text(metadata, 'type'), 'must be object'))
    }
    if (level === 'root' && restrictsMoreThanNames(metadata)) {
      const why = 'must not specify anything other than name and generateName, but metadata is implicitly specified'
      causes.push(fieldForbidden(field, why))
    }
  }
  if (
    has(schema, 'x-kubernetes-embedded-resource') &&
    !has(schema, 'x-kubernetes-preserve-unknown-fields') &&
    properties.size === 0
  ) {
    const why =
      'must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields'
    causes.push(fieldRequired(childPath(path, 'properties'), why))
  }
}

function restrictsMoreThanNames(metadata: JsonObject): boolean {
  const allowed = new Set(['type', 'default', 'properties', 'example', 'externalDocs'])
  if (Object.entries(metadata).some(([name, value]) => !allowed.has(name) && !isZero(value))) return true
  return children(metadata, 'properties').some(([name]) => name !== 'name' && name !== 'generateName')
}

function isZero(value: JsonValue): boolean {
  return value === null || value === '' || value === false || (Array.isArray(value) && value.length === 0)
}

function isIntOrStringAnyOf(anyOf: JsonValue | undefined): boolean {
  if (!Array.isArray(anyOf) || anyOf.length !== 2) return false
  const wanted = ['integer', 'string']
  return anyOf.every(
    (item, i) => isJsonObject(item) && Object.keys(item).length === 1 && text(item, 'type') === wanted[i],
  )
}

interface Skips {
  skipAnyOf: boolean
  skipFirstAllOf: boolean
}
const noSkips: Skips = { skipAnyOf: false, skipFirstAllOf: false }

function checkValidation(
  schema: JsonObject,
  path: string,
  causes: StatusCause[],
  { skipAnyOf, skipFirstAllOf }: Skips,
): void {
  if (!skipAnyOf) {
    for (const [i, item] of schemas(schema, 'anyOf').entries()) {
      checkNested(item, indexPath(childPath(path, 'anyOf'), i), causes, noSkips)
    }
  }
  for (const [i, item] of schemas(schema, 'allOf').entries()) {
    checkNested(item, indexPath(childPath(path, 'allOf'), i), causes, {
      skipAnyOf: skipFirstAllOf && i === 0,
      skipFirstAllOf: false,
    })
  }
  for (const [i, item] of schemas(schema, 'oneOf').entries()) {
    checkNested(item, indexPath(childPath(path, 'oneOf'), i), causes, noSkips)
  }
  const not = child(schema, 'not')
  if (not !== undefined) checkNested(not, childPath(path, 'not'), causes, noSkips)
  const pattern = text(schema, 'pattern')
  if (pattern === '') return
  const compiled = compilePattern(pattern)
  if ('error' in compiled) {
    const why = `must be a valid regular expression, but isn't: ${compiled.error}`
    causes.push(fieldInvalid(childPath(path, 'pattern'), pattern, why))
  }
}

/** Members that define structure: they are forbidden inside of combinations. */
const forbidden: [string, string][] = [
  ['type', 'must be empty to be structural'],
  ['additionalProperties', 'must be undefined to be structural'],
  ['default', 'must be undefined to be structural'],
  ['title', 'must be empty to be structural'],
  ['description', 'must be empty to be structural'],
  ['nullable', 'must be false to be structural'],
  ['x-kubernetes-preserve-unknown-fields', 'must be false to be structural'],
  ['x-kubernetes-embedded-resource', 'must be false to be structural'],
  ['x-kubernetes-int-or-string', 'must be false to be structural'],
  ['x-kubernetes-list-map-keys', 'must be empty to be structural'],
  ['x-kubernetes-list-type', 'must be undefined to be structural'],
  ['x-kubernetes-map-type', 'must be undefined to be structural'],
  ['x-kubernetes-validations', 'must be empty to be structural'],
]

function checkNested(schema: JsonObject, path: string, causes: StatusCause[], skips: Skips): void {
  checkValidation(schema, path, causes, skips)
  const items = child(schema, 'items')
  if (items !== undefined) checkNested(items, childPath(path, 'items'), causes, noSkips)
  for (const [name, property] of children(schema, 'properties')) {
    checkNested(property, keyPath(childPath(path, 'properties'), name), causes, noSkips)
  }
  for (const [name, why] of forbidden) {
    const value = fieldOf(schema, name)
    if (value !== undefined && !isZero(value)) causes.push(fieldForbidden(childPath(path, name), why))
  }
  if (child((fieldOf(schema, 'properties') as JsonObject | undefined) ?? {}, 'metadata') !== undefined) {
    causes.push(fieldForbidden(`${path}.properties[metadata]`, 'must not be specified in a nested context'))
  }
}

/**
 * Every field and list that a combination at the root mentions must be in the structure as well. Combinations further
 * down are not checked, as upstream: schemas in use rely on that.
 */
function checkComplete(structure: JsonObject, path: string, causes: StatusCause[]): void {
  for (const name of ['allOf', 'anyOf', 'oneOf']) {
    for (const [i, item] of schemas(structure, name).entries()) {
      checkMirrored({ schema: structure, path }, { schema: item, path: indexPath(childPath(path, name), i) }, causes)
    }
  }
  const not = child(structure, 'not')
  if (not !== undefined)
    checkMirrored({ schema: structure, path }, { schema: not, path: childPath(path, 'not') }, causes)
}

/** A schema with its path. */
interface Placed {
  readonly schema: JsonObject
  readonly path: string
}

function checkMirrored(structure: Placed, { schema: nested, path }: Placed, causes: StatusCause[]): void {
  for (const name of ['allOf', 'anyOf', 'oneOf']) {
    for (const [i, item] of schemas(nested, name).entries()) {
      checkMirrored(structure, { schema: item, path: indexPath(childPath(path, name), i) }, causes)
    }
  }
  const not = child(nested, 'not')
  if (not !== undefined) checkMirrored(structure, { schema: not, path: childPath(path, 'not') }, causes)
  const items = child(nested, 'items')
  if (items !== undefined) {
    const [own, ownPath] = [child(structure.schema, 'items'), childPath(structure.path, 'items')]
    if (own === undefined) causes.push(fieldRequired(ownPath, `because it is defined in ${childPath(path, 'items')}`))
    else checkMirrored({ schema: own, path: ownPath }, { schema: items, path: childPath(path, 'items') }, causes)
  }
  for (const [name, property] of children(nested, 'properties')) {
    const field = keyPath(childPath(path, 'properties'), name)
    const ownPath = keyPath(childPath(structure.path, 'properties'), name)
    const own = new Map(children(structure.schema, 'properties')).get(name)
    if (own === undefined) causes.push(fieldRequired(ownPath, `because it is defined in ${field}`))
    else checkMirrored({ schema: own, path: ownPath }, { schema: property, path: field }, causes)
  }
}
