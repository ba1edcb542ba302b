// Validation of signer names of certificates: `domain/path`.
import {
  byteLength,
  dns1123LabelErrors,
  dns1123SubdomainErrors,
  fieldInvalid,
  fieldRequired,
  fieldTooLong,
} from '#apimachinery/field/index.ts'
import { goQuote } from '#apimachinery/text/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'

const longestDomain = 253
const longestName = longestDomain + 1 + longestDomain + 63 + 1

/** Validation errors of the signer name at `path`. */
export function signerNameCauses(path: string, name: string): StatusCause[] {
  if (name === '') return [fieldRequired(path)]
  const [domain = '', rest, ...more] = name.split('/')
  if (rest === undefined || more.length > 0)
    return [fieldInvalid(path, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'")]
  const labels = domain.split('.')
  return [
    ...(byteLength(domain) > longestDomain ? [fieldTooLong(path, longestDomain)] : []),
    ...firstWrong(path, domain, labels, dns1123LabelErrors),
    ...(labels.length < 2
      ? [fieldInvalid(path, domain, 'should be a domain with at least two segments separated by dots')]
      : []),
    ...firstWrong(path, rest, rest.split('.'), dns1123SubdomainErrors),
    ...(byteLength(name) > longestName ? [fieldTooLong(path, longestName)] : []),
  ]
}

/** Errors for the first invalid label only. */
function firstWrong(
  path: string,
  segment: string,
  labels: readonly string[],
  errorsOf: (label: string) => string[],
): StatusCause[] {
  for (const label of labels) {
    const errors = errorsOf(label)
    if (errors.length > 0)
      return errors.map((text) => fieldInvalid(path, segment, `validating label ${goQuote(label)}: ${text}`))
  }
  return []
}
