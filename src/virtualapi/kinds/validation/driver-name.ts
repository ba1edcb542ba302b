// The name of a driver of volumes or devices.
import {
  byteLength,
  dns1123SubdomainErrors,
  fieldInvalid,
  fieldRequired,
  fieldTooLong,
} from '../../../apimachinery/field/index.ts'
import type { StatusCause } from '../../../apimachinery/status/index.ts'

const longest = 63

/** There, short, and a subdomain in letters of any case. */
export function driverNameCauses(path: string, name: string): StatusCause[] {
  return [
    ...(name === '' ? [fieldRequired(path)] : []),
    ...(byteLength(name) > longest ? [fieldTooLong(path, longest)] : []),
    ...dns1123SubdomainErrors(name.toLowerCase()).map((text) => fieldInvalid(path, name, text)),
  ]
}
