// The audit file of a process: opened before requests are served, closed after the last one.
import { openLineFile, type LineFile, type Logger, type Metrics } from '#telemetry/index.ts'
import { ExitError, messageOf } from '#cli/process/exit-error.ts'

export interface AuditLogOptions {
  /** A file, or `-` for standard output. */
  readonly path: string
  /** Size at which the file is renamed; 0: never. */
  readonly maxFileBytes: number
  /** Maximum number of renamed files that are kept; 0: all. */
  readonly maxBackups: number
}

/** Minimum time between two log messages about lost lines, milliseconds. */
const reportIntervalMs = 60_000

/** Opens the file; SIGHUP opens its path again, after a rotation. Rejects with ExitError when it cannot be opened. */
export async function openAuditLog(
  options: AuditLogOptions,
  { metrics, log }: { readonly metrics: Metrics; readonly log: Logger },
): Promise<LineFile> {
  const written = metrics.counter({ name: 'kcp_audit_lines_total', help: 'Audit lines, the dropped ones included' })
  const dropped = metrics.counter({
    name: 'kcp_audit_lines_dropped_total',
    help: 'Audit lines that were lost: their disk was full or too slow',
  })
  let reportedAt = -reportIntervalMs
  const file = await openLineFile({
    ...options,
    onDropped: (lines, error) => {
      dropped.inc({}, lines)
      if (performance.now() - reportedAt < reportIntervalMs) return
      reportedAt = performance.now()
      log.error('audit lines are lost', { path: options.path, error })
    },
  }).catch((error: unknown) => {
    throw new ExitError(`cannot write audit lines to "${options.path}": ${messageOf(error)}`, { cause: error })
  })
  const reopen = (): void => file.reopen()
  process.on('SIGHUP', reopen)
  return {
    write(line) {
      written.inc()
      file.write(line)
    },
    reopen,
    flushed: () => file.flushed(),
    async [Symbol.asyncDispose]() {
      process.off('SIGHUP', reopen)
      await file[Symbol.asyncDispose]()
    },
  }
}
