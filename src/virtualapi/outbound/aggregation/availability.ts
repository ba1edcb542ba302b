// Keeps the condition Available of APIServices up to date in logical clusters that use them: while a request for
// APIServices, or a request that they route to another server, is open, and for a minute after it. Other logical
// clusters cost nothing.
import { abortable, sleep } from '#async/index.ts'
import type { ClusterId } from '#apimachinery/meta/index.ts'
import type { WatchCache } from '#store/watch-cache/index.ts'
import type { AggregatedServers } from './aggregated-servers.ts'
import { unavailableService, type Verdict } from './availability-verdict.ts'
import { remoteApiServices, type RemoteApiService } from './remote-api-service.ts'

/** Writes the condition Available of an APIService unless it has this verdict already. */
export type WriteAvailable = (cluster: ClusterId, name: string, verdict: Verdict, signal: AbortSignal) => Promise<void>

interface Dependencies {
  readonly watchCache: Pick<WatchCache, 'cluster'>
  readonly servers: AggregatedServers
  readonly write: WriteAvailable
  /** Called with the errors of failed writes, and of failed reads from the watch cache. */
  readonly onError: (error: unknown) => void
  readonly signal: AbortSignal
}

const lingerMs = 60_000
/** The pause between two looks at Services and their endpoints. */
const lookMs = 1000
/**
 * The time after which a server that passed is checked again, as upstream. A server that failed is checked sooner at
 * first.
 */
const passedMs = 30_000
const firstRetryMs = 1000
const checkMs = 5000
/** The most servers of one logical cluster that are checked at once. */
const concurrency = 8

interface Checked {
  /** The server as it was checked. If the APIService has changed since, the result does not count. */
  readonly server: RemoteApiService['remote']
  readonly verdict: Verdict
  readonly again: number
  readonly failures: number
}

class Keeper {
  uses = 0
  until = 0
  readonly checked = new Map<string, Checked>()
  /** Resolved when all APIServices have been looked at once more. */
  look = Promise.withResolvers<undefined>()

  looked(): void {
    this.look.resolve(undefined)
    this.look = Promise.withResolvers<undefined>()
  }
}

export class Availability {
  readonly #dependencies: Dependencies
  readonly #keepers = new Map<ClusterId, Keeper>()
  readonly #running = new Set<Promise<void>>()

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies
  }

  /** Keeps the conditions of this logical cluster until the result is called, and a minute more. */
  use(cluster: ClusterId): () => void {
    const known = this.#keepers.get(cluster)
    const keeper = known ?? new Keeper()
    keeper.uses++
    if (known === undefined) {
      this.#keepers.set(cluster, keeper)
      const running = this.#keep(cluster, keeper)
        .catch((error: unknown) => {
          if (!this.#dependencies.signal.aborted) this.#dependencies.onError(error)
        })
        .finally(() => {
          this.#keepers.delete(cluster)
          keeper.looked()
          this.#running.delete(running)
        })
      this.#running.add(running)
    }
    return () => {
      keeper.uses--
      keeper.until = performance.now() + lingerMs
    }
  }

  /**
   * Resolves when the condition of this APIService has been written once, if the conditions of its logical cluster are
   * being kept, and at the latest after the timeout of a check. So a server that responds is not shown without the
   * condition.
   */
  async untilJudged(cluster: ClusterId, name: string, signal: AbortSignal): Promise<void> {
    const timeout = AbortSignal.timeout(checkMs)
    const objects = await this.#dependencies.watchCache.cluster(cluster, { signal })
    while (remoteApiServices(objects).get(name)?.isJudged === false) {
      const keeper = this.#keepers.get(cluster)
      if (keeper === undefined || timeout.aborted) return
      await abortable(keeper.look.promise, AbortSignal.any([signal, timeout])).catch(() => signal.throwIfAborted())
    }
  }

  async #keep(cluster: ClusterId, keeper: Keeper): Promise<void> {
    const { watchCache, signal } = this.#dependencies
    while (keeper.uses > 0 || performance.now() < keeper.until) {
      const objects = await watchCache.cluster(cluster, { signal })
      const remote = [...remoteApiServices(objects).values()]
      for (const name of keeper.checked.keys()) if (!remoteApiServices(objects).has(name)) keeper.checked.delete(name)
      for (let i = 0; i < remote.length; i += concurrency)
        await Promise.all(remote.slice(i, i + concurrency).map((one) => this.#visit(cluster, keeper, one)))
      keeper.looked()
      await sleep(lookMs, signal)
    }
  }

  async #visit(cluster: ClusterId, keeper: Keeper, one: RemoteApiService): Promise<void> {
    const { watchCache, write, onError, signal } = this.#dependencies
    try {
      const objects = await watchCache.cluster(cluster, { signal })
      const unavailable = unavailableService(objects, one.remote)
      if (unavailable !== undefined) keeper.checked.delete(one.name)
      await write(cluster, one.name, unavailable ?? (await this.#asked(cluster, keeper, one)), signal)
    } catch (error) {
      // The next look tries again. The write may have failed because the APIService was changed meanwhile.
      if (!signal.aborted) onError(error)
    }
  }

  async #asked(cluster: ClusterId, keeper: Keeper, one: RemoteApiService): Promise<Verdict> {
    const known = keeper.checked.get(one.name)
    const isSame = known !== undefined && isEqual(known.server, one.remote)
    if (isSame && performance.now() < known.again) return known.verdict
    const verdict = await this.#ask(cluster, one)
    const failures = verdict.status === 'True' ? 0 : (isSame ? known.failures : 0) + 1
    const waitMs = failures === 0 ? passedMs : Math.min(passedMs, firstRetryMs * 2 ** (failures - 1))
    keeper.checked.set(one.name, { server: one.remote, verdict, again: performance.now() + waitMs, failures })
    return verdict
  }

  /**
   * Requests the group version of the server. As upstream, the check accepts any certificate; requests of clients are
   * sent only to a server with the right one.
   */
  async #ask(cluster: ClusterId, one: RemoteApiService): Promise<Verdict> {
    const { servers, signal } = this.#dependencies
    const { name, port, namespace } = one.remote.service
    let url = `https://${name}.${namespace}.svc:${port}/apis/${one.group}/${one.version}`
    try {
      const endpoint = await servers.resolve(cluster, one.remote, signal)
      if ('dial' in endpoint)
        url = `https://${hostOf(endpoint.dial.address)}:${endpoint.dial.port}/apis/${one.group}/${one.version}`
      const path = `/apis/${one.group}/${one.version}`
      const asked = { endpoint, insecure: true, timeoutMs: checkMs, signal }
      const status = await servers.get(cluster, one, path, asked).then(
        (answer) => answer.status,
        (error: unknown) => {
          throw new Error(`failing or missing response from ${url}: Get "${url}": ${(error as Error).message}`)
        },
      )
      if (status >= 200 && status < 300) return { status: 'True', reason: 'Passed', message: 'all checks passed' }
      return refused(`failing or missing response from ${url}: bad status from ${url}: ${status}`)
    } catch (error) {
      signal.throwIfAborted()
      return refused((error as Error).message)
    }
  }

  /** Resolves when no check is running any more. The signal in the dependencies ends the checks. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.allSettled(this.#running)
  }
}

function refused(message: string): Verdict {
  return { status: 'False', reason: 'FailedDiscoveryCheck', message }
}

function hostOf(address: string): string {
  return address.includes(':') ? `[${address}]` : address
}

function isEqual(a: RemoteApiService['remote'], b: RemoteApiService['remote']): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}
