// The readiness of the server, and the reason where it is not ready.
import type { Logger } from '#telemetry/index.ts'

/** Ready once the logical clusters are known, until the server stops or its store breaks. */
export class Readiness {
  readonly #log: Logger
  readonly #broken = Promise.withResolvers<never>()
  #isSynced = false
  #isRetired = false
  #fault: string | undefined

  constructor(log: Logger) {
    this.#log = log
    this.#broken.promise.catch(() => undefined)
  }

  /** Rejects when the server cannot serve any more. */
  get broken(): Promise<never> {
    return this.#broken.promise
  }

  /** All existing logical clusters are known. */
  synced(): void {
    this.#isSynced = true
  }

  /** New clients shall go elsewhere. */
  retire(): void {
    this.#isRetired = true
  }

  /** The store cannot be followed any more. */
  break(error: Error): void {
    this.#fault = error.message
    this.#log.error('the store can not be followed any more: this process must be restarted', { error })
    this.#broken.reject(error)
  }

  /** Why the server is not ready; undefined if it is. */
  get why(): string | undefined {
    if (this.#fault !== undefined) return this.#fault
    if (this.#isRetired) return 'the server is stopping'
    return this.#isSynced ? undefined : 'the list of logical clusters is not read yet'
  }
}
