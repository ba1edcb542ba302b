// Validation of device configuration: the name of a driver, and parameters that only the driver interprets.
import { byteLength } from '#apimachinery/field/index.ts'
import { isJsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { driverName } from './basic-rules.ts'
import { fields, present, type Rule } from './vocabulary.ts'

export interface DeviceConfig {
  readonly opaque?: { readonly driver: string; readonly parameters: JsonValue }
}

/** A value that is unchanged since it was stored; some bounds do not apply to it. */
export interface Stored {
  readonly stored: boolean
}

const mostBytes = 10 * 1024

/** An arbitrary JSON object of limited size. */
export const rawObject: Rule<JsonValue, Stored> = (value, report, { stored }) => {
  if (value === null) report.required('')
  else if (!stored && byteLength(JSON.stringify(value)) > mostBytes) report.tooLong('', mostBytes)
  else if (!isJsonObject(value)) report.invalid('', '<value omitted>', 'must be a valid JSON object')
}

export const deviceConfig = fields<DeviceConfig, Stored>({
  opaque: present(fields<NonNullable<DeviceConfig['opaque']>, Stored>({ driver: driverName, parameters: rawObject })),
})
