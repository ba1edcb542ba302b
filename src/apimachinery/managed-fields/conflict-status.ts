// The error for an applied configuration that would change fields of other managers.
import { goQuote } from '#apimachinery/text/index.ts'
import { statusError, type StatusCause, type StatusError } from '#apimachinery/status/index.ts'
import { identityOf } from './managed-entries.ts'
import type { OwnershipConflict } from './managers.ts'
import { elementText } from './path-element.ts'

/** 409 with a cause for every field. The message groups the fields by manager, and sorts the managers by name. */
export function conflictStatus(conflicts: readonly OwnershipConflict[]): StatusError {
  const causes = conflicts.map<StatusCause>(({ manager, path }) => ({
    reason: 'FieldManagerConflict',
    message: `conflict with ${managerText(manager)}`,
    field: pathText(path),
  }))
  return statusError(409, 'Conflict', messageOf(conflicts), { details: { causes } })
}

/** A path as messages show it: `.spec.containers[name="x"].image`. */
export function pathText(path: readonly string[]): string {
  return path.map(elementText).join('')
}

function messageOf(conflicts: readonly OwnershipConflict[]): string {
  const [only] = conflicts
  if (only !== undefined && conflicts.length === 1)
    return `Apply failed with 1 conflict: conflict with ${managerText(only.manager)}: ${pathText(only.path)}`
  const managers = [...new Set(conflicts.map(({ manager }) => manager))].sort()
  const lines = managers.flatMap((manager) => [
    `conflicts with ${managerText(manager)}:`,
    ...conflicts.filter((conflict) => conflict.manager === manager).map(({ path }) => `- ${pathText(path)}`),
  ])
  return `Apply failed with ${conflicts.length} conflicts: ${lines.join('\n')}`
}

function managerText(identifier: string): string {
  const { manager = '', operation, apiVersion = '', subresource } = identityOf(identifier)
  const who = subresource ? `${goQuote(manager)} with subresource ${goQuote(subresource)}` : goQuote(manager)
  return operation === 'Update' ? `${who} using ${apiVersion}` : who
}
