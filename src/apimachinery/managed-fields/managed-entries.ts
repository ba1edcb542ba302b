// The conversion of metadata.managedFields to managers and back.
import { parseJsonText } from '#apimachinery/json/index.ts'
import { goQuote } from '#apimachinery/text/index.ts'
import { compareText, isJsonObject, type ManagedFieldsEntry } from '#apimachinery/meta/index.ts'
import type { FieldSet } from './field-set.ts'
import { parseFieldsV1, sortFields } from './fields-v1.ts'
import type { Managers, Owned } from './managers.ts'

/** Managers, and the time of each manager's last write: RFC 3339, in seconds. */
export interface Managed {
  readonly managers: Managers
  readonly times: ReadonlyMap<string, string>
}

export const noManagers: Managed = { managers: new Map(), times: new Map() }

type Identity = { readonly [Name in 'manager' | 'operation' | 'apiVersion' | 'subresource']?: string | undefined }

/**
 * The identifier of a manager: update managers are distinguished by name, version and subresource, appliers by name and
 * subresource. It has upstream's form, because messages are sorted by it.
 */
export function managerIdentifier({ manager, operation, apiVersion, subresource }: Identity): string {
  const members = { manager, operation, apiVersion: operation === 'Apply' ? undefined : apiVersion, subresource }
  let plain = ''
  for (const [name, value] of Object.entries(members)) {
    if (!value) continue
    if (escaped.test(value)) return escapedIdentifier(members)
    plain += `${plain === '' ? '' : ','}"${name}":"${value}"`
  }
  return `{${plain}}`
}

/** Characters that JSON, or Go's encoder, may escape. */
const escaped = /[^ !#-%'-;=?-[\]-~]/

/** The same identifier for texts with any characters. */
function escapedIdentifier({ manager, operation, apiVersion, subresource }: Identity): string {
  return JSON.stringify({
    ...(manager ? { manager } : {}),
    ...(operation ? { operation } : {}),
    ...(apiVersion ? { apiVersion } : {}),
    ...(subresource ? { subresource } : {}),
  }).replace(/[<>&\u2028\u2029]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** The identity in an identifier. */
export function identityOf(identifier: string): Identity {
  return parseJsonText(identifier) as Identity
}

/**
 * The managers of entries. Throws for malformed entries. `isOurs`: the entries were written by `encodeManaged`, so
 * their sets are taken as they are.
 */
export function decodeManaged(entries: readonly ManagedFieldsEntry[], { isOurs }: { isOurs: boolean }): Managed {
  const managers = new Map<string, Owned>()
  const times = new Map<string, string>()
  for (const [i, entry] of entries.entries()) {
    const { operation, apiVersion = '', fieldsType = '', fieldsV1, time } = entry
    if (operation !== 'Apply' && operation !== 'Update') throw new Error('operation must be `Apply` or `Update`')
    if (apiVersion === '') throw new Error('apiVersion must not be empty')
    if (fieldsType === '') throw new Error(`missing fieldsType in managed fields entry ${i}`)
    if (fieldsType !== 'FieldsV1')
      throw new Error(`invalid fieldsType ${goQuote(fieldsType)} in managed fields entry ${i}`)
    const identifier = managerIdentifier(entry)
    const applied = operation === 'Apply'
    if (isOurs && isJsonObject(fieldsV1))
      managers.set(identifier, {
        fields: fieldsV1 as unknown as FieldSet,
        apiVersion,
        applied,
        read: { identifier, entry },
      })
    else managers.set(identifier, { fields: parseFieldsV1(fieldsV1), apiVersion, applied })
    if (time !== undefined) times.set(identifier, time)
  }
  return { managers, times }
}

/** The entries of managers in upstream's order; undefined if there are none. */
export function encodeManaged({ managers, times }: Managed): ManagedFieldsEntry[] | undefined {
  if (managers.size === 0) return undefined
  const entries = [...managers].map(([identifier, owned]) => encodeEntry(identifier, owned, times.get(identifier)))
  return entries.length === 1 ? entries : entries.sort(compareEntries)
}

/** The entry of a manager, with its members in the order of the Go struct. */
function encodeEntry(
  identifier: string,
  { fields, apiVersion, applied, read }: Owned,
  time: string | undefined,
): ManagedFieldsEntry {
  const isSorted = read?.entry.fieldsV1 === fields
  if (isSorted && read.identifier === identifier && read.entry.time === time && read.entry.apiVersion === apiVersion)
    return read.entry
  const { manager, operation, subresource } = identityOf(identifier)
  return {
    ...(manager === undefined ? {} : { manager }),
    operation: applied ? 'Apply' : (operation ?? 'Update'),
    apiVersion,
    ...(time === undefined ? {} : { time }),
    fieldsType: 'FieldsV1',
    fieldsV1: isSorted ? fields : sortFields(fields),
    ...(subresource === undefined ? {} : { subresource }),
  }
}

function compareEntries(a: ManagedFieldsEntry, b: ManagedFieldsEntry): number {
  return (
    compareText(a.operation ?? '', b.operation ?? '') ||
    secondsOf(a.time) - secondsOf(b.time) ||
    compareText(a.manager ?? '', b.manager ?? '') ||
    compareText(a.apiVersion ?? '', b.apiVersion ?? '') ||
    compareText(a.subresource ?? '', b.subresource ?? '')
  )
}

/** Unix time in seconds; 0 if the time is absent or malformed. */
export function secondsOf(time: string | undefined): number {
  return time === undefined ? 0 : Math.floor(Date.parse(time) / 1000) || 0
}
