// The Strategy of custom resources: its rules come from their CustomResourceDefinition.
import { withoutFields } from '#apimachinery/managed-fields/index.ts'
import { fieldInvalid, qualifiedNameErrors } from '#apimachinery/field/index.ts'
import { goQuote } from '#apimachinery/text/index.ts'
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  type KubeObject,
  isJsonNumber,
} from '#apimachinery/meta/index.ts'
import { applyDefaults, pruneUnknown, validate, type SchemaNode } from '#apimachinery/schema/index.ts'
import { forbidden, requestEntityTooLarge, type StatusCause } from '#apimachinery/status/index.ts'
import { isTerminatingCrd } from './crd-strategy.ts'
import { embeddedCauses } from '#virtualapi/kinds/resources/embedded-resources.ts'
import { ruleTreeOf } from './rule-tree.ts'
import { runRules } from './run-rules.ts'
import { subdomainName } from '#virtualapi/kinds/resources/names.ts'
import type { ResourceInfo } from '#virtualapi/kinds/resources/resource-info.ts'
import type { CustomFacts, RequestContext, Strategy } from '#virtualapi/kinds/resources/resource-definition.ts'

interface CustomKind {
  readonly info: ResourceInfo
  readonly schema?: SchemaNode
  /** Schema of the storage version, if that is another version. */
  readonly storageSchema?: SchemaNode
  /** JSON paths that the CustomResourceDefinition allows in field selectors. */
  readonly selectableFields?: readonly string[]
  readonly scale?: CustomFacts['scale'] | undefined
}

/** Creates the strategy of one version. Called once per compiled CustomResourceDefinition and version. */
export function customStrategy({ info, schema, storageSchema, selectableFields = [], scale }: CustomKind): Strategy {
  const hasStatus = info.subresources.some(({ name }) => name === 'status')
  const check = (object: KubeObject, { work, warnings }: RequestContext, old?: KubeObject): StatusCause[] =>
    schema === undefined
      ? []
      : withRuleCauses(schema, { object, old, warnings }, [
          ...validate(asJson(object), schema, { work, ...(old === undefined ? {} : { old: asJson(old) }) }),
          ...(scale === undefined
            ? []
            : [...replicaCauses(object, scale.specReplicasPath), ...scaleStatusCauses(object, scale)]),
          ...embeddedCauses(asJson(object), schema),
        ])
  const statusSchema = schema?.properties?.['status']
  return {
    hasStatus,
    hasGeneration: true,
    // With a status subresource, a change of the status alone does not raise the generation; without a status
    // subresource, it does.
    statusMembers: hasStatus ? ['status'] : [],
    allowUnconditionalUpdate: false,
    selectableFields: Object.fromEntries(
      selectableFields.map((path) => [path.replace(/^\./, ''), (object) => valueAt(object, path)]),
    ),
    validateName: subdomainName,
    applyDefaults(object) {
      if (schema !== undefined) fit(asJson(object), schema)
    },
    ...(storageSchema === undefined ? {} : { prepareForStorage: (object) => fit(asJson(object), storageSchema) }),
    prepareForCreate(object, { objects }) {
      if (isTerminatingCrd(objects, info))
        throw forbidden(
          info,
          object.metadata.name ?? '',
          'create not allowed while custom resource definition is terminating',
        )
    },
    ownableFields: (subresource) =>
      subresource === 'status' ? statusFields : subresource === '' && hasStatus ? specFields : undefined,
    validateCreate: (object, context) => check(object, context),
    warningsOf: (object, old, _context, subresource) =>
      object.metadata.finalizers === undefined || subresource === 'status' ? [] : finalizerWarnings(object, old),
    validateUpdate(object, old, context, subresource) {
      if (subresource !== 'status') return check(object, context, old)
      const { status } = asJson(object)
      const { status: before } = asJson(old)
      if (status === undefined)
        return schema === undefined ? [] : withRuleCauses(schema, { object, old, warnings: context.warnings }, [])
      const options = { work: context.work, ...(before === undefined ? {} : { old: before }) }
      const causes = [
        ...(statusSchema === undefined ? [] : validate(status, statusSchema, options).map(inStatus)),
        ...(scale === undefined ? [] : scaleStatusCauses(object, scale)),
      ]
      const { warnings } = context
      return schema === undefined ? causes : withRuleCauses(schema, { object, old, warnings }, causes)
    },
  }
}

/**
 * The ownable fields of each endpoint if there is a status subresource: neither endpoint writes the fields of the
 * other.
 */
const specFields = withoutFields(['f:status'])
const statusFields = withoutFields(['f:spec'])
const asJson = (object: KubeObject): JsonObject => object as unknown as JsonObject

interface Written {
  readonly object: KubeObject
  readonly old: KubeObject | undefined
  readonly warnings: string[]
}

const blocking = new Set([
  'FieldValueNotSupported',
  'FieldValueRequired',
  'FieldValueTooLong',
  'FieldValueTooMany',
  'FieldValueTypeInvalid',
])
const unchecked =
  'some validation rules were not checked because the object was invalid; correct the existing errors to complete validation'

/** Adds the failures of validation rules, which run only on objects that have the fields and types of their schema. */
function withRuleCauses(schema: SchemaNode, { object, old, warnings }: Written, causes: StatusCause[]): StatusCause[] {
  const tree = ruleTreeOf(schema, { isResource: true })
  if (tree === undefined) return causes
  if (causes.some(({ reason = '' }) => blocking.has(reason))) return [...causes, fieldInvalid('', null, unchecked)]
  const options = old === undefined ? {} : { old: asJson(old), warnings }
  return [...causes, ...runRules(asJson(object), tree, options)]
}

/**
 * The cause with a path below `status`. As upstream, which validates the status alone, the message does not have this
 * path.
 */
function inStatus({ field = '', ...cause }: StatusCause): StatusCause {
  const isRoot = field === '' || field === '<nil>'
  return { ...cause, field: isRoot ? 'status' : `status${field.startsWith('[') ? '' : '.'}${field}` }
}

/** Drops unknown fields and adds defaults. Throws RequestEntityTooLarge if the defaults make the object too large. */
function fit(object: JsonObject, schema: SchemaNode): void {
  pruneUnknown(object, schema, { isResourceRoot: true })
  if (!applyDefaults(object, schema))
    throw requestEntityTooLarge('the object is too large with the defaults of its schema')
}

const maxReplicas = 2 ** 31 - 1

function replicaCauses(object: KubeObject, path: string): StatusCause[] {
  const value = at(object, path)
  if (!isJsonNumber(value)) return []
  if (value < 0) return [fieldInvalid(path, value, 'should be a non-negative integer')]
  return value > maxReplicas ? [fieldInvalid(path, value, `should be less than or equal to ${maxReplicas}`)] : []
}

function scaleStatusCauses(
  object: KubeObject,
  { statusReplicasPath }: NonNullable<CustomFacts['scale']>,
): StatusCause[] {
  return replicaCauses(object, statusReplicasPath)
}

const standardFinalizers = new Set(['orphan', 'foregroundDeletion', 'kubernetes'])

/** Warnings about new finalizers whose names could clash with finalizers of other writers. */
function finalizerWarnings(object: KubeObject, old: KubeObject | undefined): string[] {
  const warnings: string[] = []
  const before = new Set(old?.metadata.finalizers)
  for (const name of [...new Set(object.metadata.finalizers)].filter((one) => !before.has(one)).sort()) {
    const head = `metadata.finalizers: ${goQuote(name)}: `
    warnings.push(...qualifiedNameErrors(name).map((text) => head + text))
    if (name.includes('/') || standardFinalizers.has(name)) continue
    const how = name.includes('.') ? ' including a path (/)' : ''
    warnings.push(
      `${head}prefer a domain-qualified finalizer name${how} to avoid accidental conflicts with other finalizer writers`,
    )
  }
  return warnings
}

function at(object: KubeObject, path: string): JsonValue | undefined {
  let value: JsonValue | undefined = object as unknown as JsonObject
  for (const field of path.replace(/^\./, '').split('.')) value = isJsonObject(value) ? value[field] : undefined
  return value
}

/** The value at a simple JSON path (`.spec.color`) as field selectors compare it: a string, empty if there is none. */
function valueAt(object: KubeObject, path: string): string {
  const value = at(object, path)
  return typeof value === 'string' ? value : isJsonNumber(value) || typeof value === 'boolean' ? String(value) : ''
}
