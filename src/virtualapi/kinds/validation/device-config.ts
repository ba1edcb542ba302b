// Configuration that a driver gets: whose it is, and an object that only the driver reads.
import { fieldInvalid, fieldRequired, fieldTooLong } from '../../../apimachinery/field/index.ts'
import { isJsonObject, type JsonValue } from '../../../apimachinery/meta/index.ts'
import type { StatusCause } from '../../../apimachinery/status/index.ts'
import { driverNameCauses } from './driver-name.ts'

export interface DeviceConfig {
  readonly opaque?: { readonly driver: string; readonly parameters: JsonValue }
}

const mostBytes = 10 * 1024

/** What is wrong with a configuration. `stored`: it was kept before, with any size. */
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

/** An object of any form, and not too large. */
export function rawObjectCauses(path: string, value: JsonValue, { stored = false } = {}): StatusCause[] {
  if (value === null) return [fieldRequired(path)]
  if (!stored && Buffer.byteLength(JSON.stringify(value)) > mostBytes) return [fieldTooLong(path, mostBytes)]
  return isJsonObject(value) ? [] : [fieldInvalid(path, '<value omitted>', 'must be a valid JSON object')]
}
