// The file of audit lines of a process: opened before anything is served, closed after everything was.
import { openLineFile, type LineFile, type Logger, type Metrics } from '../../telemetry/index.ts'
import { ExitError, messageOf } from '../process/exit-error.ts'

export interface AuditLogOptions {
  /** A file, or `-` for standard output. */
  readonly path: string
  /** 0: the file is never renamed. */
  readonly maxFileBytes: number
  /** Renamed files that are kept; 0: all. */
  readonly maxBackups: number
}

/** How often lost lines are told in the log at most, milliseconds. */
const tellMs = 60_000

/** Opens it; SIGHUP opens its name anew, for whoever rotates it. Rejects with ExitError when it cannot be opened. */
export async function openAuditLog(
  options: AuditLogOptions,
  { metrics, log }: { readonly metrics: Metrics; readonly log: Logger },
): Promise<LineFile> {
  const written = metrics.counter({ name: 'kcp_audit_lines_total', help: 'Audit lines, the dropped ones included' })
  const dropped = metrics.counter({
    name: 'kcp_audit_lines_dropped_total',
    help: 'Audit lines that were lost: their disk was full or too slow',
  })
  let told = -tellMs
  const file = await openLineFile({
    ...options,
    onDropped: (lines, error) => {
      dropped.inc({}, lines)
      if (performance.now() - told < tellMs) return
      told = performance.now()
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
