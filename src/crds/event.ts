// An Event (core/v1) that kcp writes about an object of a tenant or of its own.
import type { KubeObject, ObjectMeta } from '#apimachinery/meta/index.ts'

/** The fields that differ between the Events of kcp. */
export interface EventFields {
  /** A name, or `generateName`, and the namespace of the Event. */
  readonly metadata: ObjectMeta
  /** The object that it is about. */
  readonly about: EventTarget
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  /** Cut at 1,024 characters. */
  readonly message: string
  /** The component that reports it, such as `kcp-placement`. */
  readonly component: string
  /** RFC 3339. */
  readonly now: string
}

export interface EventTarget {
  readonly apiVersion: string
  readonly kind: string
  readonly namespace?: string
  readonly name: string
  readonly uid: string
  readonly resourceVersion?: string
}

const maxMessageLength = 1024

export function newEvent({ metadata, about, type, reason, message, component, now }: EventFields): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata,
    involvedObject: about,
    type,
    reason,
    message: message.slice(0, maxMessageLength),
    source: { component },
    firstTimestamp: now,
    lastTimestamp: now,
    count: 1,
  }
}
