// Validation of device configuration: the name of a driver, and parameters that only the driver interprets.
import { fieldInvalid, fieldRequired, fieldTooLong } from '#apimachinery/field/index.ts'
import { isJsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import { driverNameCauses } from './driver-name.ts'

export interface DeviceConfig {
  readonly opaque?: { readonly driver: string; readonly parameters: JsonValue }
}

const mostBytes = 10 * 1024

/** Validation errors of a configuration. `stored`: it is unchanged since it was stored, so its size is not checked. */
export function deviceConfigCauses(
  path: string,
  { opaque }: DeviceConfig,
  { stored }: { stored: boolean },
): StatusCause[] {
  if (opaque === undefined) return [fieldRequired(`${path}.opaque`)]
  return [
    ...driverNameCauses(`${path}.opaque.driver`, opaque.driver),
    ...rawObjectCauses(`${path}.opaque.parameters`, opaque.parameters, { stored }),
  ]
}

/** Validates an arbitrary JSON object of limited size. */
export function rawObjectCauses(path: string, value: JsonValue, { stored = false } = {}): StatusCause[] {
  if (value === null) return [fieldRequired(path)]
  if (!stored && Buffer.byteLength(JSON.stringify(value)) > mostBytes) return [fieldTooLong(path, mostBytes)]
  return isJsonObject(value) ? [] : [fieldInvalid(path, '<value omitted>', 'must be a valid JSON object')]
}
