// CreateOptions, UpdateOptions and PatchOptions of a query, validated before the body is read.
import { fieldForbidden, fieldInvalid, fieldNotSupported, fieldRequired } from '#apimachinery/field/index.ts'
import type { JsonObject } from '#apimachinery/meta/index.ts'
import { invalid, type StatusCause } from '#apimachinery/status/index.ts'
import { isPrintable, maxFieldManagerLength } from './field-manager.ts'
import type { FieldValidation } from '#virtualapi/codec/read-object.ts'

export interface WriteOptions {
  /**
   * The options as webhooks see them: CreateOptions, or UpdateOptions for updates and patches; absent for other verbs.
   */
  readonly shown?: JsonObject
  readonly dryRun: boolean
  readonly fieldValidation: FieldValidation
}

const kinds: Readonly<Record<string, string>> = {
  create: 'CreateOptions',
  update: 'UpdateOptions',
  patch: 'PatchOptions',
}
const validations = ['', 'Ignore', 'Strict', 'Warn']

/**
 * The options of a create, update or patch; the defaults for other verbs. Throws 422 for invalid options: a dry run
 * with an unknown value must not become a real write.
 */
export function writeOptionsOf(query: URLSearchParams, verb: string, { isApply = false } = {}): WriteOptions {
  const kind = kinds[verb]
  if (kind === undefined) return { dryRun: false, fieldValidation: 'Warn' }
  const type = { kind: verb === 'create' ? 'CreateOptions' : 'UpdateOptions', apiVersion: 'meta.k8s.io/v1' }
  if (query.size === 0 && !isApply) return { dryRun: false, fieldValidation: 'Warn', shown: type }
  const dryRun = query.getAll('dryRun')
  const fieldValidation = query.get('fieldValidation') ?? ''
  const causes = [
    ...(isApply && !query.get('fieldManager') ? [fieldRequired('fieldManager', 'is required for apply patch')] : []),
    ...(verb === 'patch' && !isApply && query.has('force')
      ? [fieldForbidden('force', 'may not be specified for non-apply patch')]
      : []),
    ...managerCauses(query.get('fieldManager') ?? ''),
    ...dryRunCauses(dryRun),
  ]
  if (!validations.includes(fieldValidation))
    causes.push(fieldNotSupported('fieldValidation', fieldValidation, validations))
  if (causes.length > 0) throw invalid({ group: 'meta.k8s.io', kind }, '', causes)
  const fieldManager = query.get('fieldManager') ?? ''
  const shown = {
    ...type,
    ...(dryRun.length > 0 ? { dryRun } : {}),
    ...(fieldManager === '' ? {} : { fieldManager }),
    ...(fieldValidation === '' ? {} : { fieldValidation }),
  }
  return { dryRun: dryRun.length > 0, fieldValidation: (fieldValidation || 'Warn') as FieldValidation, shown }
}

/** Causes for values of `dryRun` other than `All`. */
export function dryRunCauses(words: readonly string[]): StatusCause[] {
  return words.every((word) => word === 'All') ? [] : [fieldNotSupported('dryRun', [...words], ['All'])]
}

function managerCauses(manager: string): StatusCause[] {
  if (Buffer.byteLength(manager) > maxFieldManagerLength)
    return [
      {
        reason: 'FieldValueTooLong',
        message: `Too long: may not be more than ${maxFieldManagerLength} bytes`,
        field: 'fieldManager',
      },
    ]
  const at = Array.from(manager).findIndex((char) => !isPrintable(char))
  if (at < 0) return []
  const code = (Array.from(manager)[at]?.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')
  return [fieldInvalid('fieldManager', manager, `invalid character U+${code} (at position ${at})`)]
}
