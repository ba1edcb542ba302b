// The flags of audit lines, the same wherever requests are answered.
import type { Command } from 'commander'
import type { AuditLogOptions } from '../roles/audit-log.ts'
import { parseCount } from './parse-count.ts'

/** As commander gives them. */
export interface AuditFlags {
  readonly auditLog?: string
  readonly auditLogMaxsize: number
  readonly auditLogMaxbackup: number
}

/** Adds `--audit-log` and what bounds the file. */
export function withAuditFlags(command: Command): Command {
  return command
    .option(
      '--audit-log <path>',
      'write one JSON line per request: an Event of audit.k8s.io/v1 at level Metadata; - is standard output. ' +
        'SIGHUP opens the file anew. What a slow disk does not take is dropped and counted (kcp_audit_lines_dropped_total)',
    )
    .option(
      '--audit-log-maxsize <MiB>',
      'a file of this size is renamed to NAME-TIME.EXT and begun anew; 0: never',
      parseCount,
      100,
    )
    .option('--audit-log-maxbackup <count>', 'renamed files that are kept; 0: all', parseCount, 10)
}

/** What the flags say, where they ask for lines at all. */
export function auditOf({ auditLog, auditLogMaxsize, auditLogMaxbackup }: AuditFlags): { audit?: AuditLogOptions } {
  if (auditLog === undefined) return {}
  return { audit: { path: auditLog, maxFileBytes: auditLogMaxsize * 1024 * 1024, maxBackups: auditLogMaxbackup } }
}
