// Converts Events between core/v1 and events.k8s.io/v1, which have the same fields under different names.
import type { KubeObject } from '#apimachinery/meta/index.ts'

/** [events.k8s.io/v1, core/v1] */
const renamed: readonly (readonly [string, string])[] = [
  ['regarding', 'involvedObject'],
  ['note', 'message'],
  ['reportingController', 'reportingComponent'],
  ['deprecatedSource', 'source'],
  ['deprecatedFirstTimestamp', 'firstTimestamp'],
  ['deprecatedLastTimestamp', 'lastTimestamp'],
  ['deprecatedCount', 'count'],
]
const toCore = new Map(renamed)
const fromCore = new Map(renamed.map(([newer, core]) => [core, newer]))

/** events.k8s.io/v1 -> v1. Pure. */
export function eventToStorage(object: KubeObject): KubeObject {
  return rename(object, toCore, 'v1')
}

/** v1 -> events.k8s.io/v1. Pure. */
export function eventFromStorage(object: KubeObject): KubeObject {
  const event = rename(object, fromCore, 'events.k8s.io/v1')
  // core/v1 always prints these members; events.k8s.io/v1 omits them if empty.
  for (const member of ['reportingController', 'reportingInstance'])
    if (event[member] === '') Reflect.deleteProperty(event, member)
  return event
}

function rename(object: KubeObject, names: ReadonlyMap<string, string>, apiVersion: string): KubeObject {
  const members = Object.entries(object).map(([name, value]) => [names.get(name) ?? name, value])
  return { ...(Object.fromEntries(members) as KubeObject), apiVersion }
}
