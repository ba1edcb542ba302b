// The audit log of the installation: which events, by the policy of `--audit-policy-file`, and where they go: a file, a
// webhook, or both. Opened before requests are served, closed after the last one.
import { Buffer } from 'node:buffer'
import { followFile } from '#async/index.ts'
import type { AuditWebhookSettings } from '#crds/index.ts'
import { httpTransport, loadKubeconfig } from '#client/index.ts'
import { openLineFile, type LineFile, type Logger, type Metrics } from '#telemetry/index.ts'
import {
  AuditWebhook,
  compilePolicy,
  lineScope,
  parsePolicy,
  type AuditEvent,
  type AuditLog,
  type CompiledPolicy,
} from '#virtualapi/index.ts'
import { ExitError, messageOf } from '#cli/process/exit-error.ts'

export interface AuditLogOptions {
  /** File with a Policy of audit.k8s.io/v1; absent: an event at level Metadata for each request. */
  readonly policyFile?: string
  readonly file?: AuditFileOptions
  readonly webhook?: AuditWebhookOptions
}

export interface AuditFileOptions {
  /** A file, or `-` for standard output. */
  readonly path: string
  /** Size at which the file is renamed; 0: never. */
  readonly maxFileBytes: number
  /** Maximum number of renamed files that are kept; 0: all. */
  readonly maxBackups: number
  /** Age at which renamed files are deleted, milliseconds; 0: never. */
  readonly maxAgeMs: number
  /** An event with more bytes loses its bodies; if it is still too long, it is dropped. Absent: no bound. */
  readonly maxEventBytes?: number
}

export interface AuditWebhookOptions extends AuditWebhookSettings {
  /** A kubeconfig that names the webhook. */
  readonly configFile: string
}

/** Minimum time between two log messages about lost events, milliseconds. */
const reportIntervalMs = 60_000
/** How long an answer of the webhook may take, milliseconds. */
const answerMs = 30_000

interface Parts {
  readonly metrics: Metrics
  readonly log: Logger
  readonly signal: AbortSignal
}

/** Opens the log. Rejects with ExitError if a file cannot be opened or has an error. */
export async function openAuditLog(
  { policyFile, file, webhook }: AuditLogOptions,
  parts: Parts,
): Promise<AuditLog & AsyncDisposable> {
  await using stack = new AsyncDisposableStack()
  const policy = policyFile === undefined ? undefined : await followPolicy(policyFile, parts)
  const writers: ((event: AuditEvent) => void)[] = []
  if (file !== undefined) {
    const lines = stack.use(await openFile(file, parts))
    const { maxEventBytes } = file
    writers.push((event) => {
      const text = maxEventBytes === undefined ? event.text() : event.textWithin(maxEventBytes)
      if (text === undefined) lines.lost(1, new Error('event is too large even after truncating'))
      else lines.write(text)
    })
  }
  if (webhook !== undefined) {
    const posts = await openWebhook(webhook, parts, stack)
    writers.push((event) => posts.write(event))
  }
  const owned = stack.move()
  return {
    scopeOf: (attributes, user) => (policy === undefined ? lineScope : policy.current()(attributes, user)),
    write(event) {
      for (const write of writers) write(event)
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

/** The policy as the file has it now; one with an error changes nothing. */
async function followPolicy(file: string, { metrics, log, signal }: Parts): Promise<{ current(): CompiledPolicy }> {
  const reloads = metrics.counter({
    name: 'kcp_audit_policy_reloads_total',
    help: 'Changes of the file with the audit policy, by whether the new policy counts',
    labels: ['result'],
  })
  const parse = (text: string): CompiledPolicy => {
    const { policy, ignored } = parsePolicy(text)
    if (ignored.length > 0) log.warn('the audit policy has fields that count for nothing', { file, ignored })
    return compilePolicy(policy)
  }
  try {
    return await followFile(file, {
      parse,
      onChange: () => {
        reloads.inc({ result: 'success' })
        log.info('the audit policy has changed', { file })
      },
      onRefused: (error) => {
        reloads.inc({ result: 'failure' })
        log.error('the new audit policy has an error; the one before counts', { file, error })
      },
      onUnreadable: (error) => log.warn('the audit policy cannot be read', { file, error }),
      signal,
    })
  } catch (error) {
    throw new ExitError(`--audit-policy-file ${file}: ${messageOf(error)}`, { cause: error })
  }
}

/** SIGHUP opens the path of the file again, after a rotation. */
async function openFile(
  { maxEventBytes: _, ...options }: AuditFileOptions,
  { metrics, log }: Parts,
): Promise<Pick<LineFile, 'write'> & AsyncDisposable & { lost(lines: number, error: Error): void }> {
  const written = metrics.counter({ name: 'kcp_audit_lines_total', help: 'Audit lines, the dropped ones included' })
  const dropped = metrics.counter({
    name: 'kcp_audit_lines_dropped_total',
    help: 'Audit lines that were lost: their disk was full or too slow',
  })
  const report = reporter(log, 'audit lines are lost', { path: options.path })
  const lost = (lines: number, error: Error): void => {
    dropped.inc({}, lines)
    report(error)
  }
  const file = await openLineFile({ ...options, onDropped: lost }).catch((error: unknown) => {
    throw new ExitError(`cannot write audit lines to "${options.path}": ${messageOf(error)}`, { cause: error })
  })
  const reopen = (): void => file.reopen()
  process.on('SIGHUP', reopen)
  return {
    write(line) {
      written.inc()
      file.write(line)
    },
    lost(lines, error) {
      written.inc({}, lines)
      lost(lines, error)
    },
    async [Symbol.asyncDispose]() {
      process.off('SIGHUP', reopen)
      await file[Symbol.asyncDispose]()
    },
  }
}

async function openWebhook(
  { configFile, ...settings }: AuditWebhookOptions,
  { metrics, log }: Parts,
  stack: AsyncDisposableStack,
): Promise<AuditWebhook> {
  const sent = metrics.counter({
    name: 'kcp_audit_webhook_events_total',
    help: 'Audit events that the webhook has taken',
  })
  const dropped = metrics.counter({
    name: 'kcp_audit_webhook_events_dropped_total',
    help: 'Audit events that were lost: the webhook is slow or refuses them, or they are too large',
  })
  const kubeconfig = await loadKubeconfig({ file: configFile }, { trusted: true }).catch((error: unknown) => {
    throw new ExitError(`--audit-webhook-config-file: ${messageOf(error)}`, { cause: error })
  })
  const transport = stack.use(httpTransport(kubeconfig, { responseTimeoutMs: answerMs }))
  const report = reporter(log, 'audit events for the webhook are lost', { url: kubeconfig.server })
  return stack.use(
    new AuditWebhook(settings, {
      post: async (body, signal) => {
        const headers = { 'content-type': 'application/json', accept: 'application/json' }
        const limited = AbortSignal.any([signal, AbortSignal.timeout(answerMs)])
        const { status, body: answer } = await transport.request({
          method: 'POST',
          path: '',
          headers,
          body: Buffer.from(body),
          signal: limited,
        })
        for await (const _ of answer) break
        return status
      },
      onDropped: (events, error) => {
        dropped.inc({}, events)
        report(error)
      },
      onSent: (events) => sent.inc({}, events),
    }),
  )
}

/** Logs an error at most once a minute. */
function reporter(log: Logger, message: string, keys: Readonly<Record<string, unknown>>): (error: Error) => void {
  let reportedAt = -reportIntervalMs
  return (error) => {
    if (performance.now() - reportedAt < reportIntervalMs) return
    reportedAt = performance.now()
    log.error(message, { ...keys, error })
  }
}
