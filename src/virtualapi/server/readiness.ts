// The readiness of the server, and the reason if it is not ready.
import type { Logger } from '#telemetry/index.ts'

/** The server is ready once all logical clusters are known, until it stops or its store breaks. */
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

  /** Called when all existing logical clusters are known. */
  synced(): void {
    this.#isSynced = true
  }

  /** Called when the server stops: it is not ready any more, so that new clients go elsewhere. */
  retire(): void {
    this.#isRetired = true
  }

  /**
   * Called when the changes of the store cannot be followed any more: the server is not ready, and `broken` rejects.
   */
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
