// The record of used sign-in links and ended sessions, kept in a ConfigMap of the installation, so that it holds in all
// replicas and after a restart. It is read when the console is used for the first time, and followed from then on.
import { setTimeout as sleepMs } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import type { GroupVersionResource, KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError, serviceUnavailable, tolerate, tooManyRequests } from '#apimachinery/status/index.ts'
import { abortable, KeyedMutex, type Clock } from '#async/index.ts'
import { createInformer, type Informer, type KubeClient } from '#client/index.ts'
import type { Logger } from '#telemetry/index.ts'
import { endedOf, isEnded, nothingEnded, withEverybody, withSession, withTicket, type Ended } from './ended.ts'
import type { Session, Ticket } from './session.ts'

interface ConfigMap extends KubeObject {
  data?: Record<string, string>
}

const configMaps: GroupVersionResource = { group: '', version: 'v1', resource: 'configmaps' }
const namespaces: GroupVersionResource = { group: '', version: 'v1', resource: 'namespaces' }
const recordName = 'kcp-console'
const member = 'ended.json'
/** How often a write that lost against another process is repeated, and the longest wait before it. */
const [maxAttempts, maxWaitMs] = [12, 200]

/** Sessions that may wait for their end to be written, and the least time between two writes, milliseconds. */
const [maxEnding, minBetweenWritesMs] = [500, 250]

export interface RecordOptions {
  /** The API with the ConfigMap: the host, or the logical cluster `root`. */
  readonly client: KubeClient
  /** Its namespace, which is made if it is missing. */
  readonly namespace: string
  readonly clock: Pick<Clock, 'now'>
  /** Called when another process may have ended sessions. */
  readonly onEnded: (isOver: (session: Session) => boolean) => void
  readonly log: Logger
  readonly signal: AbortSignal
}

export class EndedRecord implements AsyncDisposable {
  readonly #options: RecordOptions
  readonly #mutex = new KeyedMutex()
  /** Ids of sessions that this process has ended. */
  readonly #endedHere = new LRUCache<string, true>({ max: 1000 })
  /** Sessions whose end is not written yet, and the write that they wait for. */
  readonly #ending: Session[] = []
  #written: Promise<void> | undefined
  #nextWriteMs = 0
  #informer: Informer<ConfigMap> | undefined
  #state: Ended = nothingEnded

  constructor(options: RecordOptions) {
    this.#options = options
  }

  /** Whether the session was ended before its time. Waits for the first read of the record only. */
  async isEnded(session: Session, signal: AbortSignal): Promise<boolean> {
    await this.#followed(signal)
    // The informer may lag behind what this process has written.
    return this.#endedHere.has(session.id) || isEnded(this.#state, session)
  }

  /** Marks the ticket as used, for good. Resolves with false if it was used before, wherever. */
  async use(ticket: Ticket, signal: AbortSignal): Promise<boolean> {
    return await this.#change((state, nowMs) => withTicket(state, ticket, nowMs), signal)
  }

  /**
   * Ends the session in this process at once, in others when they have read the record. Sessions that end within a
   * quarter of a second are written together, so that nobody can make this process write the record all the time.
   */
  async end(session: Session, signal: AbortSignal): Promise<void> {
    if (this.#ending.length >= maxEnding) throw tooManyRequests('too many sessions end at a time, please try again')
    this.#endedHere.set(session.id, true)
    this.#ending.push(session)
    this.#written ??= this.#writeEnding()
    await abortable(this.#written, signal)
  }

  /** Ends all sessions that began until now. */
  async endAll(signal: AbortSignal): Promise<void> {
    await this.#change(withEverybody, signal)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#informer?.[Symbol.asyncDispose]()
  }

  async #writeEnding(): Promise<void> {
    const { signal } = this.#options
    await abortable(sleepMs(Math.max(0, this.#nextWriteMs - performance.now())), signal)
    const ending = this.#ending.splice(0)
    this.#written = undefined
    this.#nextWriteMs = performance.now() + minBetweenWritesMs
    await this.#change((state, nowMs) => ending.reduce((kept, one) => withSession(kept, one, nowMs), state), signal)
  }

  async #followed(signal: AbortSignal): Promise<void> {
    if (this.#informer?.hasSynced === true) return
    this.#informer ??= this.#follow()
    await this.#informer.synced(signal)
  }

  #follow(): Informer<ConfigMap> {
    const { client, namespace, onEnded, log, signal } = this.#options
    const fieldSelector = `metadata.name=${recordName}`
    const informer = createInformer<ConfigMap>({ client, gvr: configMaps, namespace, fieldSelector, log, signal })
    informer.onChange(({ after }) => {
      // Whoever deletes the record does not bring back what has ended.
      if (after?.metadata.name !== recordName) return
      try {
        this.#state = endedOf(after.data?.[member])
        onEnded((session) => isEnded(this.#state, session))
      } catch (error) {
        log.error('the record of ended sessions of the console cannot be read', { namespace, name: recordName, error })
      }
    })
    return informer
  }

  /** Writes the changed state if nobody else has written meanwhile, else begins again with the state of the other. */
  async #change(change: (state: Ended, nowMs: number) => Ended | undefined, signal: AbortSignal): Promise<boolean> {
    const { client, namespace, clock } = this.#options
    const release = await this.#mutex.take(recordName, signal)
    try {
      for (let attempt = 0; attempt < maxAttempts; attempt++) {
        const kept = await client.tryGet<ConfigMap>(configMaps, { namespace, name: recordName }, { signal })
        const next = change(endedOf(kept?.data?.[member]), clock.now())
        if (next === undefined) return false
        if (await this.#write(kept, next, signal)) {
          this.#state = next
          return true
        }
        await abortable(sleepMs(Math.random() * maxWaitMs), signal)
      }
      throw serviceUnavailable('too many sign-ins at a time, please try again')
    } finally {
      release()
    }
  }

  /** Resolves with false if the record was written or made by others meanwhile. */
  async #write(kept: ConfigMap | undefined, next: Ended, signal: AbortSignal): Promise<boolean> {
    const { client } = this.#options
    if (kept === undefined) {
      await this.#make(signal)
      return false
    }
    try {
      const data = { ...kept.data, [member]: JSON.stringify(next) }
      await client.update<ConfigMap>(configMaps, { ...kept, data }, { signal })
      return true
    } catch (error) {
      if (isStatusError(error, 'Conflict')) return false
      throw error
    }
  }

  /** Makes an empty record by an apply, which RBAC can allow for this name alone. */
  async #make(signal: AbortSignal): Promise<void> {
    const { client, namespace } = this.#options
    const metadata = { name: recordName, namespace }
    const empty: ConfigMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata }
    const make = (): Promise<ConfigMap> =>
      client.patch<ConfigMap>(configMaps, metadata, 'apply', empty, {
        fieldManager: 'kcp-console',
        force: true,
        signal,
      })
    try {
      await make()
    } catch (error) {
      if (!isStatusError(error, 'NotFound')) throw error
      // Without a host, nothing has made the namespace yet.
      const object = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } }
      await client.create(namespaces, object, { signal }).catch(tolerate('AlreadyExists'))
      await make()
    }
  }
}
