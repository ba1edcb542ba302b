// Validation of an openAPIV3Schema of a CustomResourceDefinition: the schema must be structural, and its defaults and
// extensions must be valid.
import {
  fieldDuplicate,
  fieldForbidden,
  fieldInvalid,
  fieldNotSupported,
  fieldRequired,
  fieldTooMany,
} from '#apimachinery/field/index.ts'
import { cloneJson, fieldOf, isJsonObject, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { jsonEqual } from '#apimachinery/json/index.ts'
import {
  parseStructuralSchema,
  pruneUnknown,
  type SchemaNode,
  structuralViolations,
  validate,
} from '#apimachinery/schema/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { WorkBudget } from '#apimachinery/work-budget/index.ts'
import { checkRuleExpressions, type KeptRules } from './check-rules.ts'
import { internSchema } from './compile-crd.ts'
import { embeddedCauses, forEmbedded } from '#virtualapi/kinds/resources/embedded-resources.ts'
import { DecodeError } from '#virtualapi/kinds/resources/typed/decode-errors.ts'
import { decodeObjectMeta } from '#virtualapi/kinds/resources/typed/decode.ts'
import { ruleFieldPath } from './rule-field-path.ts'
import { ruleTreeOf } from './rule-tree.ts'
import { type RuleBudget, ruleBudget, runRules } from './run-rules.ts'
import { validationRule } from './validation-rule.ts'

const maxSelectableFields = 8
const selectableTypes: JsonValue[] = ['string', 'boolean', 'integer']

/** Validation errors of the schema at `path`. `hasStatus`: the version has a status subresource. */
export function validateCrdSchema(
  schema: JsonObject,
  path: string,
  { hasStatus, kept, work }: { hasStatus: boolean; kept: KeptRules; work: WorkBudget },
): StatusCause[] {
  const causes: StatusCause[] = []
  if (hasStatus) causes.push(...rootErrors(schema, path))
  if (fieldOf(schema, 'nullable') === true)
    causes.push(fieldForbidden(`${path}.nullable`, 'nullable cannot be true at the root'))
  const violations = structuralViolations(schema, path)
  causes.push(...violations)
  const before = causes.length
  if (violations.length === 0) {
    const node = parseStructuralSchema(schema)
    checkDefaults({ schema, node, path }, causes, { isRoot: true, budget: ruleBudget(), work })
  }
  const isSound = violations.length === 0 && causes.length === before
  const sound = new Set<JsonObject>()
  checkNode(schema, path, causes, { isRoot: true, noDefaults: undefined, insideMeta: false, sound })
  if (isSound) causes.push(...checkRuleExpressions({ source: schema, node: internSchema(schema), path, sound, kept }))
  return causes
}

const rootMembers = new Set([
  'description',
  'type',
  'format',
  'title',
  'maximum',
  'exclusiveMaximum',
  'minimum',
  'exclusiveMinimum',
  'maxLength',
  'minLength',
  'pattern',
  'maxItems',
  'minItems',
  'uniqueItems',
  'multipleOf',
  'required',
  'items',
  'properties',
  'externalDocs',
  'example',
  'x-kubernetes-preserve-unknown-fields',
  'x-kubernetes-validations',
])
const rootMemberNames =
  'Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations'

function rootErrors(schema: JsonObject, path: string): StatusCause[] {
  const type = fieldOf(schema, 'type')
  if (type !== undefined && type !== 'object') {
    const why = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
    return [fieldInvalid(`${path}.type`, type, why)]
  }
  if (Object.keys(schema).every((name) => rootMembers.has(name))) return []
  const why = `only [${rootMemberNames}] fields are allowed at the root of the schema if the status subresource is enabled`
  return [fieldInvalid(path, schema, why)]
}

/**
 * A part of a schema. `node` is the parsed `schema`. The whole schema is parsed once, because defaults contain parts
 * with defaults.
 */
interface Part {
  readonly schema: JsonObject
  readonly node: SchemaNode
  readonly path: string
}

interface DefaultChecks {
  readonly isRoot: boolean
  readonly budget: RuleBudget
  readonly work: WorkBudget
}

/** Checks that defaults have no unknown fields and match their own schema. */
function checkDefaults(part: Part, causes: StatusCause[], checks: DefaultChecks): void {
  const { schema, node, path } = part
  const { isRoot } = checks
  const value = fieldOf(schema, 'default')
  if (value !== undefined && value !== null && !isRoot) checkDefault(value, part, causes, checks)
  const isResource = isRoot || fieldOf(schema, 'x-kubernetes-embedded-resource') === true
  const below = { ...checks, isRoot: false }
  for (const [name, property] of schemasIn(schema, 'properties')) {
    const child = node.properties?.[name]
    if (child === undefined || (isResource && metaFields.has(name))) continue
    checkDefaults({ schema: property, node: child, path: `${path}.properties[${name}]` }, causes, below)
  }
  // As upstream, defaults in additionalProperties are not checked.
  const [items, itemsNode] = [fieldOf(schema, 'items'), node.items]
  if (isJsonObject(items) && itemsNode !== undefined)
    checkDefaults({ schema: items, node: itemsNode, path: `${path}.items` }, causes, below)
}

function checkDefault(
  value: JsonValue,
  { node, path }: Part,
  causes: StatusCause[],
  { budget, work }: DefaultChecks,
): void {
  const pruned = cloneJson(value)
  const isResource = node.embeddedResource === true
  if (isJsonObject(pruned) && isJsonObject(value)) {
    pruneUnknown(pruned, node, { isResourceRoot: isResource })
    // Upstream does not look for unknown fields in metadata.
    const metadata = fieldOf(value, 'metadata')
    if (isResource && metadata !== undefined) pruned['metadata'] = metadata
  }
  if (!jsonEqual(pruned, value)) causes.push(fieldInvalid(`${path}.default`, value, 'must not have unknown fields'))
  const embedded = embeddedDefaultCauses(value, node, `${path}.default`)
  if (embedded.length > 0) {
    causes.push(...embedded)
    return
  }
  const wrong = validate(value, node, { work })
  for (const { field, ...cause } of wrong) {
    causes.push({
      ...cause,
      field: field === undefined || field === '<nil>' ? `${path}.default` : `${path}.default.${field}`,
    })
  }
  if (wrong.length === 0) causes.push(...defaultRuleCauses(value, node, `${path}.default`, budget))
}

/** Errors in the embedded objects of a default. If metadata cannot be decoded, only that error is returned. */
function embeddedDefaultCauses(value: JsonValue, node: SchemaNode, path: string): StatusCause[] {
  const undecoded: StatusCause[] = []
  const visit = ({ metadata }: JsonObject, at: string): void => {
    const decoded = decodeObjectMeta(metadata ?? {})
    if (decoded instanceof DecodeError)
      undecoded.push(fieldInvalid(`${at}.metadata`, metadata ?? null, decoded.message))
  }
  forEmbedded(value, node, visit, path)
  return undecoded.length > 0 ? undecoded.slice(0, 1) : embeddedCauses(value, node, path)
}

/** Failures of rules for a default, which they must allow both as an unchanged value and as a new one. */
function defaultRuleCauses(value: JsonValue, node: SchemaNode, path: string, budget: RuleBudget): StatusCause[] {
  const tree = ruleTreeOf(node, { isResource: node.embeddedResource === true })
  if (tree === undefined || budget.left < 0) return []
  const causes = runRules(value, tree, { path, old: value, budget })
  return causes.length > 0 ? causes : runRules(value, tree, { path, budget })
}

const metaFields = new Set(['metadata', 'kind', 'apiVersion'])

function schemasIn(schema: JsonObject, name: string): [string, JsonObject][] {
  const map = fieldOf(schema, name)
  if (!isJsonObject(map)) return []
  return Object.entries(map).filter((entry): entry is [string, JsonObject] => isJsonObject(entry[1]))
}

interface NodeContext {
  isRoot: boolean
  /** The reason why a default is forbidden at this node, for the message; undefined if it is allowed. */
  noDefaults: string | undefined
  insideMeta: boolean
  /** Collects the nodes that have no errors, neither in themselves nor below. */
  sound: Set<JsonObject>
}

const types = ['array', 'boolean', 'integer', 'number', 'object', 'string']
const unsupported = ['id', 'additionalItems', 'patternProperties', 'definitions', 'dependencies', '$ref']

function checkNode(schema: JsonObject, path: string, causes: StatusCause[], context: NodeContext): void {
  const before = causes.length
  const type = fieldOf(schema, 'type')
  if (typeof type === 'string' && type !== '' && !types.includes(type))
    causes.push(fieldNotSupported(`${path}.type`, type, types))
  if (context.noDefaults !== undefined && (fieldOf(schema, 'default') ?? null) !== null) {
    causes.push(fieldForbidden(`${path}.default`, `must not be set ${context.noDefaults}`))
  }
  for (const name of unsupported) {
    if (fieldOf(schema, name) !== undefined) causes.push(fieldForbidden(`${path}.${name}`, `${name} is not supported`))
  }
  if (type === 'null') {
    causes.push(fieldForbidden(`${path}.type`, 'type cannot be set to null, use nullable as an alternative'))
  }
  if (Array.isArray(fieldOf(schema, 'items'))) {
    causes.push(fieldForbidden(`${path}.items`, 'items must be a schema object and not an array'))
  }
  if (context.insideMeta && fieldOf(schema, 'x-kubernetes-embedded-resource') === true) {
    causes.push(fieldForbidden(`${path}.x-kubernetes-embedded-resource`, 'must not be used inside of resource meta'))
  }
  if (fieldOf(schema, 'uniqueItems') === true) {
    causes.push(
      fieldForbidden(
        `${path}.uniqueItems`,
        'uniqueItems cannot be set to true since the runtime complexity becomes quadratic',
      ),
    )
  }
  if (fieldOf(schema, 'x-kubernetes-preserve-unknown-fields') === false) {
    causes.push(fieldInvalid(`${path}.x-kubernetes-preserve-unknown-fields`, false, 'must be true or undefined'))
  }
  checkMapType(schema, path, causes)
  checkListType(schema, path, causes)
  checkRules(schema, path, causes)
  checkChildren(schema, path, causes, context)
  if (causes.length === before) context.sound.add(schema)
}

function checkChildren(schema: JsonObject, path: string, causes: StatusCause[], context: NodeContext): void {
  const below: NodeContext = { ...context, isRoot: false }
  const properties = schemasIn(schema, 'properties')
  const additional = fieldOf(schema, 'additionalProperties')
  if (additional !== undefined && additional !== true && properties.length > 0) {
    causes.push(
      fieldForbidden(`${path}.additionalProperties`, 'additionalProperties and properties are mutual exclusive'),
    )
  }
  if (isJsonObject(additional)) {
    const noDefaults = context.insideMeta
      ? 'inside additionalProperties applying to object metadata'
      : context.noDefaults
    checkNode(additional, `${path}.additionalProperties`, causes, { ...below, noDefaults })
  }
  const isResource = context.isRoot || fieldOf(schema, 'x-kubernetes-embedded-resource') === true
  for (const [name, property] of properties) {
    const isMeta = isResource && metaFields.has(name)
    checkNode(property, `${path}.properties[${name}]`, causes, {
      ...below,
      noDefaults: isMeta && context.isRoot ? `in top-level ${name}` : context.noDefaults,
      insideMeta: context.insideMeta || isMeta,
    })
  }
  const items = fieldOf(schema, 'items')
  if (isJsonObject(items)) checkNode(items, `${path}.items`, causes, below)
  const not = fieldOf(schema, 'not')
  if (isJsonObject(not)) checkNode(not, `${path}.not`, causes, below)
  for (const name of ['allOf', 'oneOf', 'anyOf']) {
    const list = fieldOf(schema, name)
    if (!Array.isArray(list)) continue
    for (const [i, item] of list.entries()) {
      if (isJsonObject(item)) checkNode(item, `${path}.${name}[${String(i)}]`, causes, below)
    }
  }
}

function wrongType(schema: JsonObject, wanted: string, extension: string, path: string): StatusCause[] {
  const type = fieldOf(schema, 'type') ?? ''
  if (type === wanted) return []
  const why = `must be ${wanted} if ${extension} is specified`
  return [type === '' ? fieldRequired(`${path}.type`, why) : fieldInvalid(`${path}.type`, type, why)]
}

function checkMapType(schema: JsonObject, path: string, causes: StatusCause[]): void {
  const mapType = fieldOf(schema, 'x-kubernetes-map-type')
  if (mapType === undefined) return
  causes.push(...wrongType(schema, 'object', 'x-kubernetes-map-type', path))
  if (mapType !== 'atomic' && mapType !== 'granular') {
    causes.push(fieldNotSupported(`${path}.x-kubernetes-map-type`, mapType, ['atomic', 'granular']))
  }
}

function checkListType(schema: JsonObject, path: string, causes: StatusCause[]): void {
  const listType = fieldOf(schema, 'x-kubernetes-list-type')
  const field = `${path}.x-kubernetes-list-type`
  const keys = stringsOf(fieldOf(schema, 'x-kubernetes-list-map-keys'))
  const itemsValue = fieldOf(schema, 'items')
  const items = isJsonObject(itemsValue) ? itemsValue : undefined
  if (listType !== undefined) {
    const wrong = wrongType(schema, 'array', 'x-kubernetes-list-type', path)
    causes.push(...wrong)
    if (wrong.length === 0 && listType === 'set' && items !== undefined) checkSetItems(items, path, causes)
    if (listType !== 'atomic' && listType !== 'set' && listType !== 'map') {
      causes.push(fieldNotSupported(field, listType, ['atomic', 'set', 'map']))
    }
  }
  if (keys.length > 0 && listType !== 'map') {
    const why = 'must be map if x-kubernetes-list-map-keys is non-empty'
    causes.push(listType === undefined ? fieldRequired(field, why) : fieldInvalid(field, listType, why))
  }
  if (listType === 'map') checkMapItems(items, keys, path, causes)
  if ((listType === 'map' || listType === 'set') && items !== undefined && fieldOf(items, 'nullable') === true) {
    causes.push(
      fieldForbidden(`${path}.items.nullable`, `cannot be nullable when x-kubernetes-list-type is ${listType}`),
    )
  }
}

function stringsOf(value: JsonValue | undefined): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : []
}

function checkSetItems(items: JsonObject, path: string, causes: StatusCause[]): void {
  const why = 'must be atomic as item of a list with x-kubernetes-list-type=set'
  const [type, list, map] = ['type', 'x-kubernetes-list-type', 'x-kubernetes-map-type'].map((name) =>
    fieldOf(items, name),
  )
  if (type === 'array' && list !== undefined && list !== 'atomic') {
    causes.push(fieldInvalid(`${path}.items.x-kubernetes-list-type`, list, why))
  } else if (type === 'object' && map !== 'atomic') {
    causes.push(fieldInvalid(`${path}.items.x-kubernetes-map-type`, list ?? null, why))
  }
}

function checkMapItems(items: JsonObject | undefined, keys: string[], path: string, causes: StatusCause[]): void {
  const field = `${path}.x-kubernetes-list-map-keys`
  if (keys.length === 0) causes.push(fieldRequired(field, 'must not be empty if x-kubernetes-list-type is map'))
  if (items === undefined) {
    causes.push(fieldRequired(`${path}.items`, 'must have a schema if x-kubernetes-list-type is map'))
    return
  }
  const type = fieldOf(items, 'type') ?? ''
  if (type !== 'object') {
    causes.push(
      fieldInvalid(`${path}.items.type`, type, "must be object if parent array's x-kubernetes-list-type is map"),
    )
    return
  }
  const properties = new Map(schemasIn(items, 'properties'))
  const required = stringsOf(fieldOf(items, 'required'))
  for (const [i, key] of keys.entries()) {
    const property = properties.get(key)
    const at = `${path}.items.properties[${key}]`
    if (property === undefined) causes.push(fieldInvalid(field, keys, 'entries must all be names of item properties'))
    else {
      const keyType = fieldOf(property, 'type')
      if (keyType === 'array' || keyType === 'object') {
        causes.push(
          fieldInvalid(`${at}.type`, type, "must be a scalar type if parent array's x-kubernetes-list-type is map"),
        )
      }
      if (!required.includes(key) && (fieldOf(property, 'default') ?? null) === null) {
        const why =
          'this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property'
        causes.push(fieldRequired(`${at}.default`, why))
      }
      if (fieldOf(property, 'nullable') === true) {
        causes.push(
          fieldForbidden(`${at}.nullable`, 'this property is in x-kubernetes-list-map-keys, so it cannot be nullable'),
        )
      }
    }
    if (keys.indexOf(key) < i) causes.push(fieldInvalid(field, keys, 'must not contain duplicate entries'))
  }
}

const reasons = ['FieldValueDuplicate', 'FieldValueForbidden', 'FieldValueInvalid', 'FieldValueRequired']

/** Checks the text of rules; their expressions are checked by checkRuleExpressions. */
function checkRules(schema: JsonObject, path: string, causes: StatusCause[]): void {
  const rules = fieldOf(schema, 'x-kubernetes-validations')
  if (!Array.isArray(rules)) return
  // The schema of this part, parsed once for all its rules.
  let node: SchemaNode | undefined
  for (const [i, rule] of rules.entries()) {
    if (!isJsonObject(rule)) continue
    const at = `${path}.x-kubernetes-validations[${String(i)}]`
    const [text = '', message = '', expression = ''] = ['rule', 'message', 'messageExpression'].map((name) => {
      const value = fieldOf(rule, name)
      return typeof value === 'string' ? value : ''
    })
    if (text.trim() === '') causes.push(fieldRequired(`${at}.rule`, 'rule is not specified'))
    else if (message !== '' && message.trim() === '') {
      causes.push(fieldInvalid(`${at}.message`, message, 'must be non-empty if specified'))
    } else if (/[\r\n]/.test(message.trim()))
      causes.push(fieldInvalid(`${at}.message`, message, 'must not contain line breaks'))
    else if (/[\r\n]/.test(text.trim()) && message.trim() === '') {
      causes.push(fieldRequired(`${at}.message`, 'message must be specified if rule contains line breaks'))
    }
    if (expression !== '' && expression.trim() === '') {
      causes.push(fieldRequired(`${at}.messageExpression`, 'messageExpression must be non-empty if specified'))
    }
    const reason = fieldOf(rule, 'reason')
    if (typeof reason === 'string' && !reasons.includes(reason))
      causes.push(fieldNotSupported(`${at}.reason`, reason, reasons))
    causes.push(...fieldPathCauses(validationRule(rule).fieldPath, () => (node ??= parseStructuralSchema(schema)), at))
  }
}

function fieldPathCauses(fieldPath: string, node: () => SchemaNode, rulePath: string): StatusCause[] {
  if (fieldPath === '') return []
  const causes: StatusCause[] = []
  const at = `${rulePath}.fieldPath`
  if (fieldPath.trim() === '') causes.push(fieldInvalid(at, fieldPath, 'must be non-empty if specified'))
  if (/[\r\n]/.test(fieldPath)) causes.push(fieldInvalid(at, fieldPath, 'must not contain line breaks'))
  if (ruleFieldPath(fieldPath, node()) === undefined) causes.push(fieldInvalid(at, fieldPath, 'must be a valid path'))
  return causes
}

/** Validation errors of selectableFields of the version with this schema. */
export function validateSelectableFields(
  fields: readonly { jsonPath: string }[],
  schema: JsonObject,
  path: string,
): StatusCause[] {
  const causes: StatusCause[] = []
  const seen = new Set<string>()
  for (const [i, { jsonPath }] of fields.entries()) {
    const at = `${path}[${String(i)}].jsonPath`
    if (jsonPath === '') {
      causes.push(fieldRequired(at))
      continue
    }
    if (!/^(\.[A-Za-z_][A-Za-z0-9_-]*)+$/.test(jsonPath)) {
      causes.push(fieldInvalid(at, jsonPath, `is an invalid path: expected [ or . but got: ${jsonPath}`))
      continue
    }
    const steps = jsonPath.slice(1).split('.')
    const found = steps.reduce<JsonObject | undefined>((node, step) => {
      const properties = node === undefined ? undefined : fieldOf(node, 'properties')
      const child = isJsonObject(properties) ? fieldOf(properties, step) : undefined
      return isJsonObject(child) ? child : undefined
    }, schema)
    if (steps[0] === 'metadata') causes.push(fieldInvalid(at, jsonPath, 'must not point to fields in metadata'))
    else if (found === undefined) {
      causes.push(fieldInvalid(at, jsonPath, 'is an invalid path: does not refer to a valid field'))
      continue
    } else if (!selectableTypes.includes(fieldOf(found, 'type') ?? '')) {
      const why =
        'must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.'
      causes.push(fieldInvalid(at, jsonPath, why))
    }
    if (seen.has(jsonPath)) causes.push(fieldDuplicate(at, jsonPath))
    seen.add(jsonPath)
  }
  if (seen.size > maxSelectableFields) causes.push(fieldTooMany(path, seen.size, maxSelectableFields))
  return causes
}
