// Events. Those of v1 may have the older form, without eventTime; events.k8s.io/v1 requires the newer form, which is
// mostly immutable.
import { isDeepStrictEqual } from 'node:util'
import type { CoreV1Event } from '@kubernetes/client-node'
import { byteLength, dns1123SubdomainErrors, fieldInvalid, fieldRequired } from '#apimachinery/field/index.ts'
import type { JsonValue, KubeObject } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { KindRules } from './kind-rules.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { invalidInternal } from '#virtualapi/kinds/resources/typed/internal-form.ts'
import { fieldImmutable, qualifiedName } from '#virtualapi/kinds/validation/values.ts'

type Event = Data<Omit<CoreV1Event, 'metadata'>>

/** A repetition that comes later than this after the last one is written at once: so seldom, it costs the store little. */
const repeatedWithinMs = 30_000

/** Rules of v1 Events. */
export const eventRules: KindRules = {
  isRenewal,
  validate: (object) => formCauses(object, 'reportingComponent'),
}

/** Rules of events.k8s.io/v1 Events; the objects are in the form of v1. */
export const eventsV1Rules: KindRules = {
  isRenewal,
  validate(object, old) {
    const causes = formCauses(object, 'reportingController')
    return old === undefined ? [...causes, ...newFormCauses(object)] : causes
  },
  validateChange: changeCauses,
}

/** Whether it says only that the same happened again: how often, and when. */
function isRenewal(next: KubeObject, old: KubeObject): boolean {
  const sinceMs = lastSeen(next) - lastSeen(old)
  return sinceMs >= 0 && sinceMs <= repeatedWithinMs && isDeepStrictEqual(withoutCount(next), withoutCount(old))
}

/** Milliseconds; NaN where it has no time. */
function lastSeen(object: KubeObject): number {
  const { series, lastTimestamp } = object as unknown as Event
  return Date.parse(series?.lastObservedTime ?? lastTimestamp ?? '')
}

/** Without what a repetition changes; whether there is a series counts. */
function withoutCount(object: KubeObject): object {
  const { count: _, lastTimestamp: __, series, metadata, ...rest } = object as KubeObject & Record<string, unknown>
  const { managedFields = [], resourceVersion: ___, ...named } = metadata
  const managers = managedFields.map(({ time: ____, ...manager }) => manager)
  return { ...rest, hasSeries: Boolean(series), metadata: named, managers }
}

const longest = { reportingInstance: 128, action: 128, reason: 128, message: 1024 } as const

function formCauses(object: KubeObject, controllerField: string): StatusCause[] {
  const event = object as unknown as Event
  const own = object.metadata.namespace ?? ''
  const about = event.involvedObject.namespace ?? ''
  const elsewhere = [fieldInvalid('involvedObject.namespace', about, 'does not match event.namespace')]
  if (isUnset(event.eventTime)) return about === own || (about === '' && own === 'default') ? [] : elsewhere
  const { reportingComponent = '', message = '' } = event
  const causes = about === '' && own !== 'default' && own !== 'kube-system' ? elsewhere : []
  if (reportingComponent === '') causes.push(fieldRequired(controllerField))
  causes.push(...qualifiedName(controllerField, reportingComponent))
  for (const member of ['reportingInstance', 'action', 'reason'] as const) {
    const text = event[member] ?? ''
    if (text === '') causes.push(fieldRequired(member))
    causes.push(...lengthCauses(member, text))
  }
  return [...causes, ...lengthCauses('message', message)]
}

function lengthCauses(member: keyof typeof longest, text: string): StatusCause[] {
  const most = longest[member]
  return byteLength(text) > most ? [fieldInvalid(member, '', `can have at most ${most} characters`)] : []
}

/** A member without a value is null or absent. */
function isUnset(value: string | null | undefined): boolean {
  return value === null || value === undefined
}

function newFormCauses(object: KubeObject): StatusCause[] {
  const event = object as unknown as Event
  const { name = '' } = object.metadata
  const { type = '', source } = event
  const unset = (path: string): StatusCause => fieldInvalid(path, '', 'needs to be unset')
  return [
    ...dns1123SubdomainErrors(name).map((text) => fieldInvalid('metadata.name', name, text)),
    ...seriesCauses(event),
    ...(isUnset(event.eventTime) ? [fieldRequired('eventTime')] : []),
    ...(type === 'Normal' || type === 'Warning' ? [] : [fieldInvalid('type', '', `has invalid value: ${type}`)]),
    ...(isUnset(event.firstTimestamp) ? [] : [unset('firstTimestamp')]),
    ...(isUnset(event.lastTimestamp) ? [] : [unset('lastTimestamp')]),
    ...(event.count ? [unset('count')] : []),
    ...(source?.component || source?.host ? [unset('source')] : []),
  ]
}

function seriesCauses({ series }: Event): StatusCause[] {
  if (series === undefined) return []
  return [
    ...((series.count ?? 0) < 2 ? [fieldInvalid('series.count', '', 'should be at least 2')] : []),
    ...(isUnset(series.lastObservedTime) ? [fieldRequired('series.lastObservedTime')] : []),
  ]
}

/** Immutable members in upstream's order; as there, `reason` occurs twice. */
const fixed: readonly (readonly [member: keyof Event, called: string, struct?: string])[] = [
  ['involvedObject', 'involvedObject', 'core.ObjectReference'],
  ['reason', 'reason'],
  ['message', 'message'],
  ['source', 'source', 'core.EventSource'],
  ['firstTimestamp', 'firstTimestamp'],
  ['lastTimestamp', 'lastTimestamp'],
  ['count', 'count'],
  ['reason', 'reason'],
  ['type', 'type'],
  ['eventTime', 'eventTime'],
  ['action', 'action'],
  ['related', 'related', 'core.ObjectReference'],
  ['reportingComponent', 'reportingController'],
  ['reportingInstance', 'reportingInstance'],
]

function changeCauses(object: KubeObject, old: KubeObject): StatusCause[] {
  const causes = isDeepStrictEqual(object['series'], old['series']) ? [] : seriesCauses(object as unknown as Event)
  for (const [member, called, struct] of fixed) {
    const next = (object[member] ?? undefined) as JsonValue | undefined
    if (isDeepStrictEqual(next, old[member] ?? undefined)) continue
    causes.push(
      struct !== undefined && next !== undefined
        ? invalidInternal(called, struct, next, fieldImmutable)
        : fieldInvalid(called, next ?? zeroOf(member), fieldImmutable),
    )
  }
  return causes
}

function zeroOf(member: keyof Event): JsonValue {
  if (member === 'count') return 0
  return ['firstTimestamp', 'lastTimestamp', 'eventTime', 'related'].includes(member) ? null : ''
}
