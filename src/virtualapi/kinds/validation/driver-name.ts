// Validation of the name of a volume or device driver.
import {
  byteLength,
  dns1123SubdomainErrors,
  fieldInvalid,
  fieldRequired,
  fieldTooLong,
} from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'

const longest = 63

/** Validates a driver name: at most 63 bytes, a DNS subdomain, upper case allowed. */
export function driverNameCauses(path: string, name: string): StatusCause[] {
  return [
    ...(name === '' ? [fieldRequired(path)] : []),
    ...(byteLength(name) > longest ? [fieldTooLong(path, longest)] : []),
    ...dns1123SubdomainErrors(name.toLowerCase()).map((text) => fieldInvalid(path, name, text)),
  ]
}
