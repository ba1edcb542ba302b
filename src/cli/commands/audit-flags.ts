// The flags for audit lines, shared by all commands that serve requests.
import type { Command } from 'commander'
import type { AuditLogOptions } from '#cli/roles/audit-log.ts'
import { parseCount } from './parse-count.ts'

/** As commander gives them. */
export interface AuditFlags {
  readonly auditLog?: string
  readonly auditLogMaxsize: number
  readonly auditLogMaxbackup: number
}

/** Adds `--audit-log` and the limits of the file. */
export function withAuditFlags(command: Command): Command {
  return command
    .option(
      '--audit-log <path>',
      'write one JSON line per request: an Event of audit.k8s.io/v1 at level Metadata; - is standard output. ' +
        'SIGHUP reopens the file. If the disk is too slow, lines are dropped and counted (kcp_audit_lines_dropped_total)',
    )
    .option(
      '--audit-log-maxsize <MiB>',
      'a file of this size is renamed to NAME-TIME.EXT and a new one is started; 0: never',
      parseCount,
      100,
    )
    .option('--audit-log-maxbackup <count>', 'how many renamed files are kept; 0: all', parseCount, 10)
}

/** The options of the audit log; none without `--audit-log`. */
export function auditOf({ auditLog, auditLogMaxsize, auditLogMaxbackup }: AuditFlags): { audit?: AuditLogOptions } {
  if (auditLog === undefined) return {}
  return { audit: { path: auditLog, maxFileBytes: auditLogMaxsize * 1024 * 1024, maxBackups: auditLogMaxbackup } }
}
