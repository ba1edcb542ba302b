// Lists that are empty by mistake.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { expired } from '#apimachinery/status/index.ts'
import type { KubeClient, WatchEvent } from '#client/index.ts'

/** A client of an API server whose list of one resource is empty while `isWrong`. */
export class Mistake {
  isWrong = false
  /** How often an object of the resource was asked for by name meanwhile. */
  asked = 0
  #endWatches = new AbortController()
  readonly resource: string

  constructor(resource: string) {
    this.resource = resource
  }

  /** Ends the watches, so that informers list. */
  turn(isWrong: boolean): void {
    this.isWrong = isWrong
    const before = this.#endWatches
    this.#endWatches = new AbortController()
    before.abort()
  }

  of(client: KubeClient): KubeClient {
    return new Proxy(client, {
      get: (target, property) => {
        const concerns = (gvr: { resource: string }): boolean => gvr.resource === this.resource
        if (property === 'list')
          return async (...args: Parameters<KubeClient['list']>): Promise<unknown> => {
            const list = await target.list(...args)
            return concerns(args[0]) && this.isWrong ? { ...list, items: [] } : list
          }
        if (property === 'tryGet')
          return async (...args: Parameters<KubeClient['tryGet']>): Promise<unknown> => {
            if (concerns(args[0]) && this.isWrong) this.asked++
            return await target.tryGet(...args)
          }
        if (property === 'watch')
          return (...args: Parameters<KubeClient['watch']>) => this.#watch(target, concerns, args)
        const value: unknown = Reflect.get(target, property)
        return typeof value === 'function' ? (value.bind(target) as unknown) : value
      },
    })
  }

  async *#watch(
    target: KubeClient,
    concerns: (gvr: { resource: string }) => boolean,
    args: Parameters<KubeClient['watch']>,
  ): AsyncGenerator<WatchEvent<KubeObject>> {
    if (!concerns(args[0])) {
      yield* target.watch(...args)
      return
    }
    const { signal: end } = this.#endWatches
    try {
      yield* target.watch(args[0], { ...args[1], signal: AbortSignal.any([end, args[1].signal]) })
    } finally {
      // It is not resumed: the informer lists.
      if (end.aborted) throw expired('the watch is too old')
    }
  }
}
