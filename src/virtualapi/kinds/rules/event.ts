// Events. Those of v1 may have the older form, without eventTime; events.k8s.io/v1 requires the newer form, which is
// mostly immutable.
import { isDeepStrictEqual } from 'node:util'
import type { CoreV1Event } from '@kubernetes/client-node'
import { byteLength } from '#apimachinery/field/index.ts'
import type { JsonValue, KubeObject } from '#apimachinery/meta/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { qualifiedName, subdomain } from '#virtualapi/kinds/validation/basic-rules.ts'
import {
  all,
  fieldImmutable,
  fields,
  nonEmpty,
  optional,
  orEmpty,
  present,
  validating,
  validatingChange,
  type ObjectOf,
  type Rule,
} from '#virtualapi/kinds/validation/vocabulary.ts'
import type { KindRules } from './kind-rules.ts'

type Event = Data<Omit<CoreV1Event, 'metadata'>> & Pick<ObjectOf<unknown>, 'metadata'>

/** The longest time between two repetitions that may be written late. Rarer ones cost the store little. */
const repeatedWithinMs = 30_000

/** As upstream, the error does not print the text. */
const atMost =
  (bytes: number): Rule<string | undefined> =>
  (text, report) => {
    if (text && byteLength(text) > bytes) report.invalid('', '', `can have at most ${bytes} characters`)
  }
const short = all<string | undefined>(nonEmpty(), atMost(128))

const newFormMembers = fields<Event>({
  reportingInstance: short,
  action: short,
  reason: short,
  message: atMost(1024),
})

/** The form of an event whose controller has this name in errors. */
function form(controllerField: string): Rule<Event> {
  const controller = all<string>(nonEmpty(), qualifiedName)
  return (event, report) => {
    const own = event.metadata.namespace ?? ''
    const about = event.involvedObject.namespace ?? ''
    const isOld = isUnset(event.eventTime)
    const matches = isOld
      ? about === own || (about === '' && own === 'default')
      : about !== '' || own === 'default' || own === 'kube-system'
    if (!matches) report.invalid('involvedObject.namespace', about, 'does not match event.namespace')
    if (isOld) return
    report.at(controllerField, controller, event.reportingComponent ?? '')
    report.check(newFormMembers, event)
  }
}

/** A member without a value is null or absent. */
function isUnset(value: string | null | undefined): boolean {
  return value === null || value === undefined
}

const series = optional<NonNullable<Event['series']>>(({ count = 0, lastObservedTime }, report) => {
  if (count < 2) report.invalid('count', '', 'should be at least 2')
  if (isUnset(lastObservedTime)) report.required('lastObservedTime')
})

const unset: Rule<unknown> = (value, report) => {
  if (value !== undefined && value !== null) report.invalid('', '', 'needs to be unset')
}

const newForm = fields<Event>({
  metadata: fields<Event['metadata']>({ name: orEmpty(subdomain) }),
  series,
  eventTime: present(() => undefined),
  type: (type = '', report) => {
    if (type !== 'Normal' && type !== 'Warning') report.invalid('', '', `has invalid value: ${type}`)
  },
  firstTimestamp: unset,
  lastTimestamp: unset,
  count: (count, report) => report.check(unset, count || undefined),
  source: (source, report) => report.check(unset, source?.component || source?.host || undefined),
})

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

const change: Rule<Event, Event> = (event, report, old) => {
  if (!isDeepStrictEqual(event.series, old.series)) report.at('series', series, event.series)
  for (const [member, called, struct] of fixed) {
    const next = (event[member] ?? undefined) as JsonValue | undefined
    if (isDeepStrictEqual(next, old[member] ?? undefined)) continue
    if (struct !== undefined && next !== undefined) report.invalidStruct(called, struct, next, fieldImmutable)
    else report.invalid(called, next ?? zeroOf(member), fieldImmutable)
  }
}

function zeroOf(member: keyof Event): JsonValue {
  if (member === 'count') return 0
  return ['firstTimestamp', 'lastTimestamp', 'eventTime', 'related'].includes(member) ? null : ''
}

/** Rules of v1 Events. */
export const eventRules: KindRules = { isRenewal, validate: validating(form('reportingComponent')) }

const formOfV1 = form('reportingController')

/** Rules of events.k8s.io/v1 Events; the objects are in the form of v1. */
export const eventsV1Rules: KindRules = {
  isRenewal,
  validate: validating<Event>((event, report, old) => {
    report.check(formOfV1, event)
    if (old === undefined) report.check(newForm, event)
  }),
  validateChange: validatingChange(change),
}

/** True if the update only counts another occurrence: the number and the time change. */
function isRenewal(next: KubeObject, old: KubeObject): boolean {
  const sinceMs = lastSeen(next) - lastSeen(old)
  return sinceMs >= 0 && sinceMs <= repeatedWithinMs && isDeepStrictEqual(withoutCount(next), withoutCount(old))
}

/** Milliseconds since the epoch; NaN without a time. */
function lastSeen(object: KubeObject): number {
  const { series, lastTimestamp } = object as unknown as Event
  return Date.parse(series?.lastObservedTime ?? lastTimestamp ?? '')
}

/** The event without the members that a repetition changes; the presence of a series counts. */
function withoutCount(object: KubeObject): object {
  const { count: _, lastTimestamp: __, series, metadata, ...rest } = object as KubeObject & Record<string, unknown>
  const { managedFields = [], resourceVersion: ___, ...named } = metadata
  const managers = managedFields.map(({ time: ____, ...manager }) => manager)
  return { ...rest, hasSeries: Boolean(series), metadata: named, managers }
}
