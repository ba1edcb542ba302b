// The audit logs of logical clusters (spec.audit): events go to a ring in memory that tenants read, and to a webhook, as
// the policy in spec.audit says. A logical cluster without spec.audit has nothing here.
import { isDeepStrictEqual } from 'node:util'
import type { ClusterId } from '#apimachinery/meta/index.ts'
import { systemClock, type Clock } from '#async/index.ts'
import type { AuditWebhookSettings, ClusterAudit } from '#crds/index.ts'
import { EgressError, type Egress } from '#network/egress/index.ts'
import type { Logger, Metrics } from '#telemetry/index.ts'
import type { ClusterDirectory, LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import type { AuditEvent, AuditLog } from '#virtualapi/request/request-audit.ts'
import { compilePolicy, policyCauses } from './policy.ts'
import { AuditRing } from './ring.ts'
import { AuditWebhook, WebhookError } from './webhook.ts'

export interface ClusterAuditsOptions {
  readonly directory: Pick<ClusterDirectory, 'onChange'>
  /** Calls webhooks, within the rules about addresses. */
  readonly egress: Pick<Egress, 'call'>
  /** The bearer token in a Secret of a logical cluster. Rejects if there is none. */
  readonly readToken: (cluster: ClusterId, secret: SecretName, signal: AbortSignal) => Promise<string>
  /** Called when `failureOf` has changed, and after the first delivery to a webhook. */
  readonly onWebhook?: (cluster: ClusterId) => void
  readonly metrics: Metrics
  readonly log: Logger
  readonly clock?: Pick<Clock, 'now'>
  /** Memory of all rings together, bytes. Default 128 MiB. */
  readonly ringsBytes?: number
  /** Default: those of `defaultSettings`. */
  readonly webhooks?: Partial<AuditWebhookSettings>
}

type SecretName = NonNullable<NonNullable<ClusterAudit['webhook']>['tokenSecretRef']>

/** Memory of one ring, bytes, while there are few. */
export const maxRingBytes = 1024 * 1024
const defaultRingsBytes = 128 * 1024 * 1024
const callMs = 10_000
const maxAnswerBytes = 64 * 1024
/** Milliseconds between two messages about lost events of one logical cluster. */
const tellEveryMs = 60_000

/** One batch at a time: the memory of a logical cluster's events is what waits and what is under way. */
export const clusterWebhookSettings: AuditWebhookSettings = {
  bufferSize: 2000,
  maxBatchSize: 400,
  maxBatchWaitMs: 1000,
  throttle: { qps: 5, burst: 10 },
  initialBackoffMs: 1000,
  maxEventBytes: 100 * 1024,
  maxBatchBytes: 512 * 1024,
  maxBufferedBytes: 1024 * 1024,
  maxParallel: 1,
}

/** A webhook that fails. */
export interface WebhookFailure {
  /** When the first attempt failed, milliseconds. */
  readonly sinceMs: number
  /** The last error in words, without secrets. */
  readonly problem: string
}

/** Failed attempts in succession that are reported: a retry repairs most single ones. */
const reportedFailures = 2

/** The logs of all logical clusters in this process. */
export class ClusterAudits implements AsyncDisposable {
  readonly #options: ClusterAuditsOptions
  readonly #logs = new Map<ClusterId, ClusterLog>()
  readonly #shared: Shared
  readonly #end: () => void

  constructor(options: ClusterAuditsOptions) {
    this.#options = options
    this.#shared = sharedOf(options, () => this.#ringBytes())
    this.#end = options.directory.onChange(({ before, after }) => {
      const id = after?.id ?? before?.id
      if (id === undefined || !this.#logs.has(id)) return
      if (after?.audit === undefined) this.#drop(id)
      else this.logOf(after)
    })
  }

  /** The log of a logical cluster with spec.audit; undefined if the policy has errors. */
  logOf(cluster: LogicalCluster): AuditLog | undefined {
    const { id, audit } = cluster
    if (audit === undefined) return undefined
    let log = this.#logs.get(id)
    if (log?.spec === audit) return log.isValid ? log : undefined
    if (log === undefined) {
      log = new ClusterLog(cluster, this.#shared)
      this.#logs.set(id, log)
      const isPower = (this.#logs.size & (this.#logs.size - 1)) === 0
      log.configure(audit)
      // The share of each ring has become smaller.
      if (isPower) for (const other of this.#logs.values()) other.trim()
    } else log.configure(audit)
    return log.isValid ? log : undefined
  }

  /** The events that users of the logical cluster may read; undefined if it keeps none. */
  ringOf(cluster: LogicalCluster): AuditRing | undefined {
    this.logOf(cluster)
    return this.#logs.get(cluster.id)?.ring
  }

  /** Why the webhook of a logical cluster fails; undefined: it delivers, or there is none, or it was not called yet. */
  failureOf(id: ClusterId): WebhookFailure | undefined {
    return this.#logs.get(id)?.failure
  }

  /** Memory that a logical cluster's events take, bytes. */
  bytesOf(id: ClusterId): number {
    return this.#logs.get(id)?.bytes ?? 0
  }

  /** Forgets logical clusters that another process owns now. */
  forget(isMoved: (id: ClusterId) => boolean): void {
    for (const id of [...this.#logs.keys()]) if (isMoved(id)) this.#drop(id)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end()
    const logs = [...this.#logs.values()]
    this.#logs.clear()
    await Promise.all(logs.map((log) => log[Symbol.asyncDispose]()))
  }

  #drop(id: ClusterId): void {
    const log = this.#logs.get(id)
    this.#logs.delete(id)
    void log?.[Symbol.asyncDispose]()
  }

  /** What one ring may take: rings share their memory, in steps of powers of two so that few of them are trimmed. */
  #ringBytes(): number {
    const { ringsBytes = defaultRingsBytes } = this.#options
    return Math.min(maxRingBytes, ringsBytes / 2 ** Math.ceil(Math.log2(Math.max(1, this.#logs.size))))
  }
}

interface Shared {
  readonly options: ClusterAuditsOptions
  readonly ringBytes: () => number
  readonly nowMs: () => number
  readonly kept: (to: 'ring' | 'webhook') => void
  readonly lost: (to: 'ring' | 'webhook', events: number) => void
}

function sharedOf(options: ClusterAuditsOptions, ringBytes: () => number): Shared {
  const { metrics, clock = systemClock } = options
  const events = metrics.counter({
    name: 'kcp_audit_cluster_events_total',
    help: 'Audit events of logical clusters with spec.audit, the dropped ones included',
    labels: ['to'],
  })
  const dropped = metrics.counter({
    name: 'kcp_audit_cluster_events_dropped_total',
    help: 'Audit events of logical clusters that were lost: their webhook is slow or refuses them, or they are too large',
    labels: ['to'],
  })
  return {
    options,
    ringBytes,
    nowMs: () => clock.now(),
    kept: (to) => events.inc({ to }),
    lost: (to, count) => dropped.inc({ to }, count),
  }
}

const delivered = { failed: 0, sinceMs: 0, problem: '' }

/** Other errors could quote what is secret, such as a header. */
function problemOf(error: Error): string {
  const isFree = error instanceof EgressError || error instanceof WebhookError
  return isFree ? error.message : `the call failed (${error.name})`
}

class ClusterLog implements AuditLog, AsyncDisposable {
  readonly readers: ClusterId
  scopeOf: AuditLog['scopeOf'] = () => undefined
  spec: ClusterAudit | undefined
  isValid = false
  ring: AuditRing | undefined
  readonly #name: string
  readonly #shared: Shared
  /** Failed attempts since the last delivery, and the first and last of them; undefined until the first call has ended. */
  #calls: { readonly failed: number; readonly sinceMs: number; readonly problem: string } | undefined
  #webhook: AuditWebhook | undefined
  #toldAt = -Infinity

  constructor({ id, name }: LogicalCluster, shared: Shared) {
    this.readers = id
    this.#name = name
    this.#shared = shared
  }

  get failure(): WebhookFailure | undefined {
    return this.#calls !== undefined && this.#calls.failed >= reportedFailures ? this.#calls : undefined
  }

  get bytes(): number {
    return (this.ring?.bytes ?? 0) + (this.#webhook?.bytes ?? 0)
  }

  configure(spec: ClusterAudit): void {
    const before = this.spec
    this.spec = spec
    const causes = policyCauses(spec)
    this.isValid = causes.length === 0
    if (this.isValid) this.scopeOf = compilePolicy(spec)
    // The schema of LogicalClusters allows no policy with errors.
    else this.#shared.options.log.warn('spec.audit has errors and counts for nothing', { cluster: this.#name, causes })
    const readable = this.isValid && spec.readable === true
    if (!readable) {
      this.ring?.close()
      this.ring = undefined
    } else this.ring ??= new AuditRing(this.#shared.ringBytes)
    if (isDeepStrictEqual(before?.webhook, spec.webhook)) return
    void this.#webhook?.[Symbol.asyncDispose]()
    this.#calls = undefined
    this.#webhook = spec.webhook && this.#openWebhook(spec.webhook)
  }

  write(event: AuditEvent): void {
    const { kept, lost, nowMs } = this.#shared
    if (this.ring !== undefined) {
      kept('ring')
      if (!this.ring.push(event, nowMs())) lost('ring', 1)
    }
    if (this.#webhook !== undefined) {
      kept('webhook')
      this.#webhook.write(event)
    }
  }

  trim(): void {
    this.ring?.trim()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.ring?.close()
    this.ring = undefined
    await this.#webhook?.[Symbol.asyncDispose]()
  }

  #openWebhook({ url, certificateAuthority, tokenSecretRef }: NonNullable<ClusterAudit['webhook']>): AuditWebhook {
    const { options, lost } = this.#shared
    const id = this.readers
    const post = async (body: Uint8Array, signal: AbortSignal): Promise<number> => {
      const token = tokenSecretRef && (await this.#tokenOf(tokenSecretRef, signal))
      const { status } = await options.egress.call({
        cluster: id,
        url: new URL(url),
        method: 'POST',
        headers: {
          ...{ accept: 'application/json', 'content-type': 'application/json', 'user-agent': 'kcp' },
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
        },
        body,
        ...(certificateAuthority !== undefined && { caBundle: certificateAuthority }),
        timeoutMs: callMs,
        maxResponseBytes: maxAnswerBytes,
        signal,
      })
      return status
    }
    const onDropped = (events: number, error: Error): void => {
      lost('webhook', events)
      if (performance.now() - this.#toldAt < tellEveryMs) return
      this.#toldAt = performance.now()
      options.log.warn('audit events of a logical cluster are lost', { cluster: this.#name, error })
    }
    const settings = { ...clusterWebhookSettings, ...options.webhooks }
    const webhook = new AuditWebhook(settings, {
      post,
      onDropped,
      onSent: () => this.#called(webhook, undefined),
      onFailed: (error) => this.#called(webhook, error),
    })
    return webhook
  }

  async #tokenOf(secret: SecretName, signal: AbortSignal): Promise<string> {
    try {
      return await this.#shared.options.readToken(this.readers, secret, signal)
    } catch (cause) {
      signal.throwIfAborted()
      throw new WebhookError(`the token in Secret "${secret.namespace}/${secret.name}" cannot be read`, { cause })
    }
  }

  /** Reports a webhook that begins to fail, that fails for another reason, and that delivers again or for the first time. */
  #called(webhook: AuditWebhook, error: Error | undefined): void {
    // Another one may have taken its place meanwhile.
    if (webhook !== this.#webhook) return
    const [before, isFirst] = [this.failure?.problem, this.#calls === undefined]
    const { failed = 0, sinceMs = this.#shared.nowMs() } = this.#calls?.failed ? this.#calls : {}
    this.#calls = error === undefined ? delivered : { failed: failed + 1, sinceMs, problem: problemOf(error) }
    const isChange = before !== this.failure?.problem || (error === undefined && isFirst)
    if (isChange) this.#shared.options.onWebhook?.(this.readers)
  }
}
