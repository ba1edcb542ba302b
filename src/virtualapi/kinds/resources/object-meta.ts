// The metadata that the server sets on every object, and the validation of the rest (metav1 ObjectMeta).
import { canonicalJson } from '#apimachinery/json/index.ts'
import { randomBytes, randomUUID } from 'node:crypto'
import { timestamp } from '#async/index.ts'
import {
  fieldForbidden,
  fieldInvalid,
  fieldRequired,
  fieldTooMany,
  labelValueErrors,
  qualifiedNameErrors,
} from '#apimachinery/field/index.ts'
import { type Int64, type KubeObject, type ObjectMeta, type OwnerReference } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import { pathSegmentName, type NameCheck } from './names.ts'
import type { MetaCheck } from './meta-check.ts'
import type { ResourceDefinition } from './resource-definition.ts'
import { goTime } from './typed/times.ts'

const maxAnnotationsBytes = 256 * 1024
/**
 * The most owner references of an object. Upstream has no bound; here the links of all objects of a logical cluster are
 * kept in memory.
 */
const maxOwners = 1000
const suffixLetters = 'bcdfghjklmnpqrstvwxz2456789'

/** Five random characters after `generateName`, from an alphabet without vowels, as Kubernetes does. */
export function generatedName(prefix: string): string {
  let name = prefix.slice(0, 58)
  for (const byte of randomBytes(5)) name += suffixLetters[byte % suffixLetters.length] ?? 'x'
  return name
}

/** Sets the server's fields on a new object. `keepUid`: the object exists in a member already and keeps its uid. */
export function fillNewMeta(
  meta: ObjectMeta,
  { now, keepUid, hasGeneration }: { now: number; keepUid: boolean; hasGeneration: boolean },
): void {
  if (!keepUid || meta.uid === undefined) meta.uid = randomUUID()
  meta.creationTimestamp = timestamp(now)
  delete meta.resourceVersion
  delete meta.deletionTimestamp
  delete meta.deletionGracePeriodSeconds
  // As upstream, objects of kinds that do not count generations keep the generation that the client sent.
  if (hasGeneration) delete meta.generation
  Reflect.deleteProperty(meta, 'selfLink')
  if (meta.generateName === '') delete meta.generateName
}

/** Restores the fields that only the server may set. Mutates `next`. */
export function keepServerMeta(next: ObjectMeta, old: ObjectMeta): void {
  for (const field of [
    'uid',
    'creationTimestamp',
    'generation',
    'deletionTimestamp',
    'deletionGracePeriodSeconds',
  ] as const) {
    const value = old[field]
    if (value === undefined) Reflect.deleteProperty(next, field)
    else Object.assign(next, { [field]: value })
  }
}

/** Errors about changes of server-owned fields. Call it before `keepServerMeta`, which restores them. */
export function serverMetaCauses(next: ObjectMeta, old: ObjectMeta): StatusCause[] {
  const immutable = ['uid', 'deletionTimestamp', 'deletionGracePeriodSeconds'] as const
  return immutable.flatMap((member) => {
    // A client may send null, which means absent, although the type does not allow it.
    const wanted: string | Int64 | null | undefined = next[member]
    const present = old[member]
    if (wanted == null || wanted === '' || wanted === present) return []
    // As upstream, a change of an existing deletionTimestamp is ignored, not refused.
    if (member === 'deletionTimestamp' && present !== undefined) return []
    const time = member === 'deletionTimestamp' && typeof wanted === 'string' ? goTime(wanted) : undefined
    const shown = time !== undefined && 'text' in time ? time.text : wanted
    return [fieldInvalid(`metadata.${member}`, shown, 'field is immutable')]
  })
}

/** Drops repeated owner references. Returns their uids. */
export function dropRepeatedOwners(meta: ObjectMeta): string[] {
  const { ownerReferences } = meta
  if (!Array.isArray(ownerReferences) || ownerReferences.length < 2) return []
  const kept = new Map<string, OwnerReference>()
  const repeated = new Set<string>()
  for (const owner of ownerReferences) {
    const text = canonicalJson(owner)
    // The owner is not validated yet, so any field may be missing.
    if (kept.has(text)) repeated.add((owner as Partial<OwnerReference> | null)?.uid ?? '')
    else kept.set(text, owner)
  }
  if (repeated.size > 0) meta.ownerReferences = [...kept.values()]
  return [...repeated]
}

/** Drops empty members, as Go's omitempty does, so that the encoding of an unchanged object stays the same. */
export function dropEmptyMetadata(meta: ObjectMeta): void {
  Reflect.deleteProperty(meta, 'selfLink')
  for (const [field, value] of Object.entries(meta) as [keyof ObjectMeta, unknown][]) {
    const empty =
      value === null ||
      value === undefined ||
      value === '' ||
      (Array.isArray(value) && value.length === 0) ||
      (typeof value === 'object' && hasNothing(value))
    if (empty) Reflect.deleteProperty(meta, field)
  }
}

/** True if the object has no members. Object.keys would take milliseconds for a map of 100,000 keys. */
function hasNothing(value: object): boolean {
  for (const key in value) if (Object.hasOwn(value, key)) return false
  return true
}

/** The parts of a resource definition that metadata validation needs. */
interface Rules {
  readonly info: Pick<ResourceDefinition['info'], 'namespaced'>
  readonly strategy: Pick<ResourceDefinition['strategy'], 'validateName' | 'ownFinalizers'>
}

/** Validation errors of metadata that apply to every kind. */
export function metaCauses(object: KubeObject, { info, strategy }: Rules): StatusCause[] {
  const { metadata } = object
  return [
    ...nameCauses(metadata, info, strategy.validateName),
    ...contentCauses(metadata),
    ...finalizerCauses(metadata.finalizers ?? []),
    ...(strategy.ownFinalizers === true ? ownFinalizerCauses(metadata.finalizers ?? []) : []),
  ]
}

function nameCauses(metadata: ObjectMeta, { namespaced }: Rules['info'], validateName: NameCheck): StatusCause[] {
  const causes: StatusCause[] = []
  if (metadata.generateName !== undefined)
    for (const text of validateName(metadata.generateName, { prefix: true }))
      causes.push(fieldInvalid('metadata.generateName', metadata.generateName, text))
  if (metadata.name === undefined || metadata.name === '')
    causes.push(fieldRequired('metadata.name', 'name or generateName is required'))
  else
    for (const text of validateName(metadata.name, { prefix: false }))
      causes.push(fieldInvalid('metadata.name', metadata.name, text))
  if (namespaced) {
    if (!metadata.namespace) causes.push(fieldRequired('metadata.namespace'))
  } else if (metadata.namespace) causes.push(fieldForbidden('metadata.namespace', 'not allowed on this type'))
  // Only kinds that do not count generations reach this with a generation that the client sent.
  const { generation = 0 } = metadata
  if (generation < 0) causes.push(fieldInvalid('metadata.generation', generation, 'must be greater than or equal to 0'))
  return causes
}

function contentCauses(metadata: ObjectMeta, old?: ObjectMeta): StatusCause[] {
  return [...labelCauses(metadata.labels), ...annotationCauses(metadata.annotations), ...ownerCauses(metadata, old)]
}

/** Most built-in kinds, but not custom resources, require finalizers to be standard ones or qualified. */
function ownFinalizerCauses(finalizers: readonly string[]): StatusCause[] {
  return finalizers.flatMap((finalizer, index) =>
    finalizer.includes('/') || standardFinalizers.has(finalizer)
      ? []
      : [
          fieldInvalid(
            `metadata.finalizers[${index}]`,
            finalizer,
            'name is neither a standard finalizer name nor is it fully qualified',
          ),
        ],
  )
}

const standardFinalizers = new Set(['kubernetes', 'orphan', 'foregroundDeletion'])

/**
 * Validation errors of changed metadata. Upstream validates metadata several times, depending on the kind, and reports
 * each error as often as it finds that error. `kept`: the result of `serverMetaCauses`.
 */
export function metaUpdateCauses(
  { metadata }: KubeObject,
  old: ObjectMeta,
  kept: readonly StatusCause[],
  { info, strategy, checks }: Rules & { readonly checks: readonly MetaCheck[] },
): StatusCause[] {
  const content = contentCauses(metadata, old)
  const finalizers = finalizerCauses(metadata.finalizers ?? [])
  const change = [...changeCauses(metadata, old), ...kept, ...content]
  const whole = [...content, ...finalizers]
  return [
    ...nameCauses(metadata, info, pathSegmentName),
    ...whole,
    ...change,
    ...checks.flatMap((check) => [
      ...(check.whole ? [...nameCauses(metadata, info, strategy.validateName), ...whole] : change),
      ...(check.ownFinalizers ? ownFinalizerCauses(metadata.finalizers ?? []) : []),
    ]),
  ]
}

function finalizerCauses(finalizers: readonly string[]): StatusCause[] {
  const field = 'metadata.finalizers'
  const causes = finalizers.flatMap((finalizer) =>
    qualifiedNameErrors(finalizer).map((text) => fieldInvalid(field, finalizer, text)),
  )
  if (finalizers.includes('orphan') && finalizers.includes('foregroundDeletion'))
    causes.push(fieldInvalid(field, [...finalizers], 'finalizer orphan and foregroundDeletion cannot be both set'))
  return causes
}

/** Validation errors of labels. */
export function labelCauses(labels: Record<string, string> | undefined): StatusCause[] {
  const causes: StatusCause[] = []
  for (const key in labels) {
    const value = labels[key] ?? ''
    for (const text of qualifiedNameErrors(key)) causes.push(fieldInvalid('metadata.labels', key, text))
    for (const text of labelValueErrors(value)) causes.push(fieldInvalid('metadata.labels', value, text))
  }
  return causes
}

/** Validation errors of annotations. `field`: the field that errors name. */
export function annotationCauses(
  annotations: Record<string, string> | undefined,
  field = 'metadata.annotations',
): StatusCause[] {
  const causes: StatusCause[] = []
  let bytes = 0
  for (const key in annotations) {
    const value = annotations[key] ?? ''
    for (const text of qualifiedNameErrors(key.toLowerCase())) causes.push(fieldInvalid(field, key, text))
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value)
  }
  if (bytes > maxAnnotationsBytes)
    causes.push({
      reason: 'FieldValueTooLong',
      message: `Too long: may not be more than ${maxAnnotationsBytes} bytes`,
      field,
    })
  return causes
}

function ownerCauses({ ownerReferences = [] }: ObjectMeta, old?: ObjectMeta): StatusCause[] {
  const path = 'metadata.ownerReferences'
  // Objects that were stored with more owners stay writable, as long as the number does not grow.
  if (ownerReferences.length > Math.max(maxOwners, old?.ownerReferences?.length ?? 0))
    return [fieldTooMany(path, ownerReferences.length, maxOwners)]
  const causes: StatusCause[] = []
  for (const owner of ownerReferences) {
    const { apiVersion, kind } = owner
    const [groupOrVersion = '', version = groupOrVersion, ...more] = apiVersion.split('/')
    if (version === '' || more.length > 0)
      causes.push(fieldInvalid(`${path}.apiVersion`, apiVersion, 'version must not be empty'))
    for (const field of ['kind', 'name', 'uid'] as const)
      if (!owner[field]) causes.push(fieldInvalid(`${path}.${field}`, owner[field], 'must not be empty'))
    if (apiVersion === 'v1' && kind === 'Event')
      causes.push(invalidOwners(owner, '/v1, Kind=Event is disallowed from being an owner'))
  }
  const controllers = ownerReferences.filter((owner) => owner.controller === true)
  const named = controllers.map(({ kind, name }) => `${kind}/${name}`)
  if (controllers.length > 1)
    causes.push(
      invalidOwners(
        ownerReferences,
        `Only one reference can have Controller set to true. Found "true" in references for ${named.slice(0, 2).join(' and ')}`,
      ),
    )
  return causes
}

/** An Invalid error that prints owners with their members in the order of the Go struct. */
function invalidOwners(value: OwnerReference | readonly OwnerReference[], detail: string): StatusCause {
  const shown = JSON.stringify(value, ['apiVersion', 'kind', 'name', 'uid', 'controller', 'blockOwnerDeletion'])
  return {
    reason: 'FieldValueInvalid',
    message: `Invalid value: ${shown}: ${detail}`,
    field: 'metadata.ownerReferences',
  }
}

function changeCauses(next: ObjectMeta, old: ObjectMeta): StatusCause[] {
  const causes: StatusCause[] = []
  if (next.name !== old.name) causes.push(fieldInvalid('metadata.name', next.name ?? '', 'field is immutable'))
  if ((next.namespace ?? '') !== (old.namespace ?? ''))
    causes.push(fieldInvalid('metadata.namespace', next.namespace ?? '', 'field is immutable'))
  if (old.deletionTimestamp !== undefined) {
    const before = new Set(old.finalizers)
    const added = (next.finalizers ?? []).filter((finalizer) => !before.has(finalizer))
    if (added.length > 0)
      causes.push(
        fieldForbidden(
          'metadata.finalizers',
          `no new finalizers can be added if the object is being deleted, found new finalizers []string{${added.map((f) => JSON.stringify(f)).join(', ')}}`,
        ),
      )
  }
  return causes
}
