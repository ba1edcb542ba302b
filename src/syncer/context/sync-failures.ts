// The failures of a syncer, each with its time and cause: for conditions and Events of tenants' objects and for the
// status of the member.
import type { Clock } from '#async/index.ts'
import type { SyncFailureReport } from '#crds/index.ts'

/** A tenant's object that learns of a failure. */
export interface FailureSubject {
  /** Plural, such as `deployments`. */
  readonly resource: string
  readonly cluster: string
  /** Empty for an object without a namespace. */
  readonly namespace: string
  readonly name: string
}

interface Failure {
  readonly subject: FailureSubject
  readonly sinceMs: number
  message: string
  /** What the tenant was told last, and when. */
  told?: { readonly message: string; readonly atMs: number }
}

/**
 * A failure that the next attempt may mend is told only if it lasts this long. With the queue's backoff, that is within
 * 4 s.
 */
const patienceMs = 1500
/** A failure that lasts is told again, because Events expire. */
const repeatMs = 1_800_000
const maxMessageLength = 1024
/** How many different failures of one object its condition names. */
const maxJoined = 3

export class SyncFailures {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #changed: () => void
  /** By name of the step that failed. */
  readonly #failures = new Map<string, Failure>()
  /** By subject: the names of its steps that fail. */
  readonly #bySubject = new Map<string, Set<string>>()

  /** `changed` is called when the report may differ. */
  constructor(clock: Pick<Clock, 'monotonic'>, changed: () => void = () => undefined) {
    this.#clock = clock
    this.#changed = changed
  }

  /**
   * Notes that a step failed. Returns the message if the tenant must be told now, else undefined. The tenant is told at
   * once if the failure `isFinal`, because another attempt has the same result, otherwise after patienceMs.
   */
  note(
    step: string,
    subject: FailureSubject,
    { message, isFinal }: { readonly message: string; readonly isFinal: boolean },
  ): string | undefined {
    const now = this.#clock.monotonic()
    const known = this.#failures.get(step)
    const isSame = known !== undefined && keyOf(known.subject) === keyOf(subject)
    if (known !== undefined && !isSame) this.clear(step)
    const failure = isSame ? known : { subject, sinceMs: now, message }
    failure.message = cut(message)
    if (!isSame) this.#add(step, failure)
    const isDue = isFinal || now - failure.sinceMs >= patienceMs
    const { told } = failure
    const isTold = told?.message === failure.message && now - told.atMs < repeatMs
    return isDue && !isTold ? failure.message : undefined
  }

  /** The tenant has been told of the failure of this step. */
  markTold(step: string): void {
    const failure = this.#failures.get(step)
    if (failure === undefined) return
    failure.told = { message: failure.message, atMs: this.#clock.monotonic() }
    this.#changed()
  }

  /** The step succeeded. Returns its subject if the tenant was told of a failure. */
  clear(step: string): FailureSubject | undefined {
    const failure = this.#failures.get(step)
    if (failure === undefined) return undefined
    this.#failures.delete(step)
    const subject = keyOf(failure.subject)
    const steps = this.#bySubject.get(subject)
    steps?.delete(step)
    if (steps?.size === 0) this.#bySubject.delete(subject)
    if (failure.told === undefined) return undefined
    this.#changed()
    return failure.subject
  }

  /** The messages of the object's lasting failures in one line, for its condition; undefined if there are none. */
  messageOf(subject: FailureSubject): string | undefined {
    const steps = this.#bySubject.get(keyOf(subject))
    if (steps === undefined) return undefined
    const now = this.#clock.monotonic()
    const messages = new Set<string>()
    for (const step of steps) {
      const failure = this.#failures.get(step)
      if (failure !== undefined && (failure.told !== undefined || now - failure.sinceMs >= patienceMs))
        messages.add(failure.message)
    }
    if (messages.size === 0) return undefined
    const [named, more] = [[...messages].slice(0, maxJoined), messages.size - maxJoined]
    return cut([...named, ...(more > 0 ? [`and ${more} more`] : [])].join('; '))
  }

  /** The number of objects whose tenants were told of a failure, and the oldest of these failures; undefined: none. */
  report(): SyncFailureReport | undefined {
    const subjects = new Set<string>()
    let first: Failure | undefined
    for (const failure of this.#failures.values()) {
      if (failure.told === undefined) continue
      first ??= failure
      subjects.add(keyOf(failure.subject))
    }
    if (first === undefined) return undefined
    const { resource, cluster, namespace, name } = first.subject
    const where = namespace === '' ? name : `${namespace}/${name}`
    return { objects: subjects.size, first: `${resource} "${where}" of logical cluster "${cluster}": ${first.message}` }
  }

  #add(step: string, failure: Failure): void {
    this.#failures.set(step, failure)
    const subject = keyOf(failure.subject)
    const steps = this.#bySubject.get(subject) ?? new Set()
    steps.add(step)
    this.#bySubject.set(subject, steps)
  }
}

function keyOf({ resource, cluster, namespace, name }: FailureSubject): string {
  return `${resource} ${cluster}|${namespace}/${name}`
}

/** The message, cut at maxMessageLength, because a member can send any text. */
function cut(message: string): string {
  return message.length <= maxMessageLength ? message : `${message.slice(0, maxMessageLength - 3)}...`
}
