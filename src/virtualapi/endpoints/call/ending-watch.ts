// A watch of one logical cluster through the view of an export. It ends with 410 when what the view shows there may have
// changed, so that the client lists again.
import type { ClusterId, Revision } from '#apimachinery/meta/index.ts'
import { StoreError } from '#store/index.ts'
import type { CacheEvent, CacheWatch, WatchReader } from '#store/watch-cache/index.ts'
import type { RequestView } from '#virtualapi/request/request-view.ts'

export class EndingWatch implements CacheWatch {
  readonly #source: CacheWatch
  readonly #unfollow: () => void
  #reader: WatchReader | undefined
  #failure: StoreError | undefined

  constructor(source: CacheWatch, view: RequestView, cluster: ClusterId) {
    this.#source = source
    this.#unfollow = view.follow((changed) => {
      if (changed !== cluster) return
      this.#failure = new StoreError('Compacted', 'the claims of the export have changed')
      this.#reader?.ready()
    })
  }

  get waits(): boolean {
    return this.#failure !== undefined || this.#source.waits
  }

  read(reader: WatchReader): void {
    this.#reader = reader
    this.#source.read(reader)
  }

  take(maxBytes?: number): readonly CacheEvent[] | undefined {
    if (this.#failure !== undefined) throw this.#failure
    return this.#source.take(maxBytes)
  }

  progress(): Revision {
    return this.#source.progress()
  }

  [Symbol.dispose](): void {
    this.#unfollow()
    this.#source[Symbol.dispose]()
  }
}
