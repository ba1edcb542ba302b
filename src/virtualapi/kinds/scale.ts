// The scale subresource: desired and current replicas in one form (autoscaling/v1 Scale) for all kinds that have it.
import { fieldInvalid } from '#apimachinery/field/index.ts'
import { cloneJson, isJsonObject, type JsonObject, type JsonValue, type KubeObject } from '#apimachinery/meta/index.ts'
import { badRequest, internalError, invalid } from '#apimachinery/status/index.ts'
import type { CustomFacts, ResourceDefinition } from './resources/resource-definition.ts'
import type { ResourceInfo } from './resources/resource-info.ts'

type ScalePaths = NonNullable<CustomFacts['scale']>

/** autoscaling/v1 Scale. */
export interface Scale extends KubeObject {
  spec: { replicas?: number }
  status: { replicas: number; selector?: string }
}

const builtInPaths: ScalePaths = { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' }

/** The part of a resource definition that scaling needs. */
export type Scalable = Pick<ResourceDefinition, 'info' | 'custom'>

/**
 * The Scale of an object. Throws 500 for a custom resource without a value at specReplicasPath, unless `toWrite` is
 * true, because a write may set the value. Pure.
 */
export function scaleOf(object: KubeObject, { info, custom }: Scalable, { toWrite = false } = {}): Scale {
  const paths = custom?.scale
  const { specReplicasPath, statusReplicasPath, labelSelectorPath } = paths ?? builtInPaths
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata
  const replicas = valueAt(object, specReplicasPath)
  // As upstream.
  if (paths !== undefined && typeof replicas !== 'number' && !toWrite)
    throw internalError(`the spec replicas field "${specReplicasPath}" does not exist`)
  const selector = paths === undefined ? builtInSelector(object, info) : textAt(object, labelSelectorPath)
  const found = valueAt(object, statusReplicasPath)
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: {
      ...(name === undefined ? {} : { name }),
      ...(namespace ? { namespace } : {}),
      ...(uid === undefined ? {} : { uid }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
      ...(creationTimestamp === undefined ? {} : { creationTimestamp }),
    },
    spec: typeof replicas === 'number' && replicas !== 0 ? { replicas } : {},
    status: {
      replicas: typeof found === 'number' ? found : 0,
      ...(selector === '' ? {} : { selector }),
    },
  }
}

/** True if the object has a number of desired replicas. */
export function hasReplicas(object: KubeObject, { custom }: Scalable): boolean {
  return typeof valueAt(object, (custom?.scale ?? builtInPaths).specReplicasPath) === 'number'
}

/**
 * The object with the replicas of `scale`, and with its resourceVersion and uid as preconditions. Pure. Throws 422 for
 * a negative number, 400 if replicas is not an integer.
 */
export function applyScale(object: KubeObject, scale: KubeObject, { custom }: Scalable): KubeObject {
  const { metadata, spec } = scale
  const replicas = (isJsonObject(spec) ? spec['replicas'] : undefined) ?? 0
  if (typeof replicas !== 'number' || !Number.isInteger(replicas))
    throw badRequest('spec.replicas of a Scale must be an integer')
  // Custom resources validate the number by their own schema.
  if (replicas < 0 && custom === undefined)
    throw invalid({ group: 'autoscaling', kind: 'Scale' }, object.metadata.name ?? '', [
      fieldInvalid('spec.replicas', replicas, 'must be greater than or equal to 0'),
    ])
  const next = cloneJson(object)
  if (metadata.resourceVersion) next.metadata.resourceVersion = metadata.resourceVersion
  // Without a resourceVersion in the Scale, built-in kinds are updated unconditionally. Custom resources do not allow
  // this, so they keep their current resourceVersion.
  else if (custom === undefined) delete next.metadata.resourceVersion
  if (metadata.uid) next.metadata.uid = metadata.uid
  setAt(next as unknown as JsonObject, membersOf((custom?.scale ?? builtInPaths).specReplicasPath), replicas)
  return next
}

function builtInSelector(object: KubeObject, { group, resource }: ResourceInfo): string {
  const selector = valueAt(object, '.spec.selector')
  if (!isJsonObject(selector)) return ''
  return selectorText(group === '' && resource === 'replicationcontrollers' ? { matchLabels: selector } : selector)
}

/** `.spec.replicas` -> [spec, replicas]. A CRD may only give such simple paths here. */
function membersOf(path: string): string[] {
  return path.split('.').filter((member) => member !== '')
}

function valueAt(object: KubeObject, path: string): JsonValue | undefined {
  let value: JsonValue | undefined = object as unknown as JsonValue
  for (const member of membersOf(path)) value = isJsonObject(value) ? value[member] : undefined
  return value
}

function textAt(object: KubeObject, path: string | undefined): string {
  const value = path === undefined ? undefined : valueAt(object, path)
  return typeof value === 'string' ? value : ''
}

function setAt(object: JsonObject, [member = '', ...rest]: readonly string[], value: JsonValue): void {
  if (rest.length === 0) {
    object[member] = value
    return
  }
  const child = object[member]
  const next = isJsonObject(child) ? child : {}
  object[member] = next
  setAt(next, rest, value)
}

/**
 * The selector as text, with its requirements sorted by key, as upstream prints it. Empty for a selector that selects
 * all objects.
 */
function selectorText({ matchLabels, matchExpressions }: JsonObject): string {
  const requirements: [string, string][] = []
  if (isJsonObject(matchLabels))
    for (const [key, value] of Object.entries(matchLabels)) requirements.push([key, `${key}=${text(value)}`])
  for (const expression of Array.isArray(matchExpressions) ? matchExpressions : []) {
    if (!isJsonObject(expression)) continue
    const key = text(expression['key'])
    requirements.push([key, expressionText(key, text(expression['operator']), expression['values'])])
  }
  return requirements
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .map(([, text]) => text)
    .join(',')
}

function expressionText(key: string, operator: string, values: JsonValue | undefined): string {
  const list = (Array.isArray(values) ? values.map(text) : []).sort().join(',')
  switch (operator) {
    case 'In':
      return `${key} in (${list})`
    case 'NotIn':
      return `${key} notin (${list})`
    case 'Exists':
      return key
    default:
      return `!${key}`
  }
}

function text(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : ''
}
